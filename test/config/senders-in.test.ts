import { expect, test } from 'vitest'
import { sendersIn } from '../../src/config/senders-in.ts'

test.each<[string, object, string[] | undefined, object | undefined]>([
  [
    'one sender: for each country of the route',
    { from: 'ACME' },
    ['AU', 'GB'],
    {
      senders: [
        { country: 'AU', sender: 'ACME' },
        { country: 'GB', sender: 'ACME' },
      ],
      isSet: true,
      isOpen: false,
    },
  ],
  [
    'one sender, and a route for all countries',
    { senderId: 'ACME' },
    undefined,
    { senders: [], isSet: true, isOpen: true },
  ],
  [
    'senders by country: without the countries that are not served',
    { from: { AU: 'ACME', FR: false } },
    ['AU', 'FR', 'GB'],
    { senders: [{ country: 'AU', sender: 'ACME' }], isSet: true, isOpen: false },
  ],
  [
    'no sender: the vendor chooses it',
    {},
    ['AU'],
    { senders: [{ country: 'AU', sender: undefined }], isSet: false, isOpen: false },
  ],
  ['a sender in the form of a plugin', { from: { name: 'ACME' } }, ['AU'], undefined],
  ['a list', { from: ['ACME'] }, ['AU'], undefined],
])('%s', (_, settings, countries, expected) => {
  expect(sendersIn(settings as Record<string, unknown>, countries)).toEqual(expected)
})

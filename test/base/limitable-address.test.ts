import { expect, test } from 'vitest'
import { limitableAddress } from '../../src/base/limitable-address.ts'

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:51234', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['::FFFF:cb00:7107', '203.0.113.7'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8:1:2::7', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002:ffff:0:0:1', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::7]:443', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::7]', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['2001:db8::', '2001:db8:0:0::/64'],
  ['2001::3:4:5:6:7', '2001:0:0:3::/64'],
])('limitableAddress: %s is counted as %s', (text, counted) => {
  expect(limitableAddress(text)).toBe(counted)
})

test.each([
  '',
  'unknown',
  '_hidden',
  '1.2.3',
  '1.2.3.4.5',
  '256.1.1.1',
  '2001:db8',
  'x',
  ' 1.2.3.4',
])('limitableAddress: %j is no address', (text) => {
  expect(limitableAddress(text)).toBe(undefined)
})

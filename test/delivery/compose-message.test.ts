import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import type { Channel } from '../../src/base/channel.ts'
import { createComposeMessage } from '../../src/delivery/compose-message.ts'
import type { OpenNotice } from '../../src/notice/claim.ts'
import { loadTemplates } from '../tools/load-templates.ts'

const folder = mkdtempSync(join(inject('runFolder'), 'web-otp-'))
mkdirSync(join(folder, 'captcha'))
const text = 'Your code is {{code}}.'
writeFileSync(join(folder, 'captcha/sms.en.txt'), `${text}\n\n@acme.example #{{code}}`)
writeFileSync(join(folder, 'captcha/email.en.txt'), `Subject: code\n\n${text}\n@acme.example #1`)

writeFileSync(join(folder, 'captcha/sms.en.IN.txt'), 'India: {{code}}')

const compose = createComposeMessage({
  templates: loadTemplates(folder),
  unseal: () => JSON.stringify({ code: '4711' }),
  withoutWebOtpIn: ['MY'],
  log: { notRendered: expect.unreachable } as never,
})
const textFor = (channel: Channel, recipient: string) =>
  compose({ id: '1', channel, recipient, template: 'captcha', locale: 'en' } as OpenNotice, 0)?.text

test('an SMS has the edition for the country of its number', () => {
  expect(textFor('sms', '+918123456789')).toBe('India: 4711')
})

test('a message has the country of its number and the digits there; a mail has neither', () => {
  const notice = { id: '1', template: 'captcha', locale: 'en' }
  const sms = { ...notice, channel: 'sms', recipient: '+6591234567' } as OpenNotice
  expect(compose(sms, 0)).toMatchObject({ country: 'SG', nationalNumber: '91234567' })
  const mail = { ...notice, channel: 'email', recipient: 'ada@acme.my' } as OpenNotice
  expect(compose(mail, 0)).not.toHaveProperty('nationalNumber')
})

test('an SMS to a country of withoutWebOtp has no line of WebOTP; other countries and mails keep all lines', () => {
  expect(textFor('sms', '+60123456789')).toBe('Your code is 4711.')
  expect(textFor('sms', '+6591234567')).toBe('Your code is 4711.\n\n@acme.example #4711')
  expect(textFor('email', 'ada@acme.my')).toBe('Your code is 4711.\n@acme.example #1')
})

test('the text of SMS by another channel has no line of WebOTP; a voice gets the digits apart', () => {
  expect(textFor('whatsapp', '+6591234567')).toBe('Your code is 4711.')
  expect(textFor('voice', '+6591234567')).toBe('Your code is 4, 7, 1, 1.')
})

import { expect, test } from 'vitest'
import { limitableAddress, wideAddress } from '../../src/base/limitable-address.ts'

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
  // The end of any address may be written like IPv4, and an address of IPv4 without dots.
  ['2001:db8:1:2::203.0.113.7', '2001:db8:1:2::/64'],
  ['0:0:0:0:0:ffff:cb00:7107', '203.0.113.7'],
  ['fe80::1%eth0.100', 'fe80:0:0:0::/64'],
  ['2400::3:4:5:6:7', '2400:0:0:3::/64'],
  // IPv4 behind a translator (RFC 6052, RFC 8215), by 6to4 and by Teredo.
  ['64:ff9b::198.51.100.9', '198.51.100.9'],
  ['[64:ff9b::c633:6409]:443', '198.51.100.9'],
  ['64:ff9b:1::c633:6409', '198.51.100.9'],
  ['64:ff9b:1:fffe::198.51.100.9', '198.51.100.9'],
  ['64:ff9b:2::c633:6409', '64:ff9b:2:0::/64'],
  ['64:ff9b:0:1::c633:6409', '64:ff9b:0:1::/64'],
  ['2002:c633:6409:7::1', '198.51.100.9'],
  ['2002:c633:6409:8:1:2:3:4', '198.51.100.9'],
  ['2001:0:4136:e378:8000:63bf:39cc:9bf6', '198.51.100.9'],
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

test.each([
  ['2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:db8:1:ffff::/64', '2001:db8:1::/48'],
  ['0:0:0:0::/64', '0:0:0::/48'],
  ['203.0.113.7', '203.0.113.7'],
  ['', ''],
  ['unknown', 'unknown'],
])('wideAddress: the network of %s is %s', (counted, wide) => {
  expect(wideAddress(counted)).toBe(wide)
})

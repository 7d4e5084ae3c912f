import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gsm7Septets, measureSms, segmentUnits, splitSms } from '../../src/base/sms-length.ts'

describe('the length of an SMS', () => {
  it.each([
    ['', 'gsm7', 0, 1],
    ['Your code is 1234', 'gsm7', 17, 1],
    ['a'.repeat(160), 'gsm7', 160, 1],
    ['a'.repeat(161), 'gsm7', 161, 2],
    ['a'.repeat(306), 'gsm7', 306, 2],
    ['a'.repeat(307), 'gsm7', 307, 3],
    ['€'.repeat(80), 'gsm7', 160, 1],
    [`${'a'.repeat(159)}€`, 'gsm7', 161, 2],
    ['{[~]}|^\\', 'gsm7', 16, 1],
    ['您的验证码是1234', 'ucs2', 10, 1],
    ['码'.repeat(70), 'ucs2', 70, 1],
    ['码'.repeat(71), 'ucs2', 71, 2],
    ['码'.repeat(134), 'ucs2', 134, 2],
    ['码'.repeat(135), 'ucs2', 135, 3],
    ['😀'.repeat(35), 'ucs2', 70, 1],
    ['`', 'ucs2', 1, 1],
    ['ç', 'ucs2', 1, 1],
    ['Ç', 'gsm7', 1, 1],
    ['\u001b', 'ucs2', 1, 1],
  ])('of %j is %s, %i units, %i segments', (text, encoding, units, segments) => {
    expect(measureSms(text)).toEqual({ encoding, units, segments })
  })

  it('never cuts a character that takes two places', () => {
    const euros = splitSms(`${'a'.repeat(152)}€${'a'.repeat(20)}`)
    expect(euros.segments).toEqual(['a'.repeat(152), `€${'a'.repeat(20)}`])
    const emoji = splitSms(`${'码'.repeat(66)}😀${'码'.repeat(20)}`)
    expect(emoji.segments[0]).toBe('码'.repeat(66))
    expect(emoji.segments[1]?.startsWith('😀')).toBe(true)
  })

  it('knows the codes at the corners of the alphabet', () => {
    const codes = ['@', '\n', '\r', 'Δ', 'Ξ', 'Æ', 'É', ' ', '?', '¡', 'A', '§', '¿', 'a', 'à', '€']
    expect(codes.map(gsm7Septets)).toEqual([
      [0x00],
      [0x0a],
      [0x0d],
      [0x10],
      [0x1a],
      [0x1c],
      [0x1f],
      [0x20],
      [0x3f],
      [0x40],
      [0x41],
      [0x5f],
      [0x60],
      [0x61],
      [0x7f],
      [0x1b, 0x65],
    ])
  })

  it('loses nothing and fits every segment, for any text', () => {
    const anyText = fc.oneof(
      fc.string({ maxLength: 500 }),
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.string({ unit: fc.constantFrom('a', '€', '码', '😀'), maxLength: 500 }),
    )
    fc.assert(
      fc.property(anyText, (text) => {
        const { encoding, segments } = splitSms(text)
        expect(segments.join('')).toBe(text)
        const room = segmentUnits[encoding][segments.length === 1 ? 'single' : 'joined']
        for (const segment of segments) {
          const units =
            encoding === 'ucs2'
              ? segment.length
              : [...segment].flatMap((char) => gsm7Septets(char) ?? []).length
          expect(units).toBeLessThanOrEqual(room)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

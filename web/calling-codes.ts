/** The calling code of each country. A test compares this table with libphonenumber, which the service uses. */

/** Each entry is a run of consecutive codes: the first code, then the countries (ISO 3166) of each code. */
const table = `
1us1ca1ag1ai1as1bb1bm1bs1dm1do1gd1gu1jm1kn1ky1lc1mp1ms1pr1sx1tc1tt1vc1vg1vi7ru7kz20eg27za30grnlbefres36hu39itroch43atgbdksenoplde39va
44gg44im44je47sj51pemxcuarbrclcove60myauidphnzsgth61cc61cx81jpkr84vn86cn90trinpkaflkmm98ir211ssmadz212eh216tn218ly
220gmsnmrmlgncibfnetgbjmulrslghngtdcfcmcvstgqgacgcdaogwioacscsdrwetsodjketzugbimz260zmmgrezwnamwlsbwszkm262yt290sher290ta297awfogl
350giptluieisalmtcyfibg358ax370ltlveemdambyadmcsm380uarsmexk385hrsiba389mk420czsk423li500fkbzgtsvhnnicrpapmht
590gpbogyecgfpymqsruycw590bl590mf599bq670tl672nfbnnrpgtosbvufjpwwfcknu685wskinctvpftkfmmh850kp852hkmo855khla880bd886tw
960mvlbjosyiqkwsayeom970psaeilbhqabtmnnp992tjtmazgekg998uz`

const codes = new Map<string, string>()
for (const [, first, countries = ''] of table.matchAll(/(\d+)(\D+)/g)) {
  for (const [index, country] of (countries.match(/\w\w/g) ?? []).entries())
    codes.set(country.toUpperCase(), `${Number(first) + index}`)
}
const known = new Set(codes.values())

/** Undefined for a country without phone numbers. */
export const callingCodeOf = (country: string) => codes.get(country)

/** The calling code at the beginning of an international number. No code is the beginning of another code. */
export const callingCodeIn = (digits: string) =>
  [1, 2, 3].map((length) => digits.slice(0, length)).find((code) => known.has(code))

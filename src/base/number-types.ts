/** What libphonenumber knows of that can get an SMS anywhere, in the policy file's spelling. */
export const numberTypes = [
  'mobile',
  'fixed_line_or_mobile',
  'voip',
  'fixed_line',
  'personal_number',
  'toll_free',
  'uan',
] as const

export type NumberType = (typeof numberTypes)[number]

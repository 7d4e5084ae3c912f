/** The number types of libphonenumber that can get SMS in some country, as the policy file spells them. */
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

/** For `safeParse` of zod: names an absent member as missing. Zod calls it an `undefined` of the wrong type. */
export const missingInWords = {
  error: ({ code, input }: { code?: string; input?: unknown }) =>
    input === undefined && code !== 'invalid_value' ? 'is missing' : undefined,
}

import type * as z from 'zod'

/** For `safeParse` of zod: names an absent member as missing. Zod calls it an `undefined` of the wrong type. */
export const missingInWords = {
  error: ({ code, input }: { code?: string; input?: unknown }) =>
    input === undefined && code !== 'invalid_value' ? 'is missing' : undefined,
}

interface SchemaProblem {
  path: (string | number)[]
  message: string
}

/** The problems in an error of zod; each unknown key is a separate problem. */
export function schemaProblems(error?: { readonly issues: readonly object[] }): SchemaProblem[] {
  const issues = (error?.issues ?? []) as z.core.$ZodIssue[]
  return issues.flatMap(ofAlternative).flatMap((issue): SchemaProblem[] => {
    const path = issue.path as (string | number)[]
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ path: [...path, key], message: 'unknown key' }))
    const [ofName] = issue.code === 'invalid_key' ? issue.issues : []
    return [{ path, message: (ofName ?? issue).message }]
  })
}

/** For a value with alternative forms: the problems of the first form that has its type, otherwise of the first form. */
function ofAlternative(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const isOfType = ({ path, code }: z.core.$ZodIssue) =>
    path.length > 0 || !['invalid_type', 'invalid_value'].includes(code)
  const chosen = issue.errors.find((form) => form.every(isOfType)) ?? issue.errors[0] ?? []
  return chosen.flatMap((inner) =>
    ofAlternative({ ...inner, path: [...issue.path, ...inner.path] } as z.core.$ZodIssue),
  )
}

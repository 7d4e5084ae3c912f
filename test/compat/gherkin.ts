/**
 * Reads feature files: scenarios with their steps, the steps of the background first. Only the part of Gherkin that the
 * files of CAMARA use: no outlines, tables or doc strings. An unknown line is an error, so no step can be lost.
 */
export interface Scenario {
  readonly tag: string
  readonly title: string
  /** The steps without their keywords. */
  readonly steps: readonly string[]
}

export function scenariosIn(text: string): Scenario[] {
  const background: string[] = []
  const scenarios: { tag: string; title: string; steps: string[] }[] = []
  let steps: string[] | undefined
  let tag = ''
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [, keyword = '', rest = ''] =
      /^\s*(Feature:|Background:|Scenario:|Given |When |Then |And |But |@|#)\s*(.*?)\s*$/.exec(
        line,
      ) ?? []
    if (/^\s*$/.test(line) || keyword === '#' || keyword === 'Feature:') continue
    if (keyword === '@') tag = rest
    else if (keyword === 'Background:') steps = background
    else if (keyword === 'Scenario:') {
      steps = [...background]
      scenarios.push({ tag, title: rest, steps })
    } else if (keyword && steps) steps.push(rest)
    else throw new Error(`line ${index + 1}: ${line}`)
  }
  return scenarios
}

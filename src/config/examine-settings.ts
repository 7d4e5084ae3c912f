import { about, type Finding } from '../base/finding.ts'

const neededNode = 24

/** `problems`: the reasons why no process can start with the environment, the policy file and the templates. */
export function examineSettings(problems: readonly string[]): Finding[] {
  const { ok, error } = about('settings')
  const { node } = process.versions
  return [
    ...(problems.length === 0
      ? [ok('environment, policy file and templates are correct')]
      : problems.map((problem) => error(problem, 'correct it; until then no process can start'))),
    Number.parseInt(node, 10) >= neededNode
      ? ok(`Node ${node}`)
      : error(`Node ${node} is too old`, `install Node ${neededNode} or later`),
  ]
}

/**
 * The parts of a template about the link of a code, `{{#link}}…{{/link}}`. They are shown only where the scene of the code has
 * a link. One outside the other is refused as any block is.
 */
import Handlebars from 'handlebars'

export function isLinkPart(node: hbs.AST.Statement): node is hbs.AST.BlockStatement {
  if (node.type !== 'BlockStatement') return false
  const { path, params, hash, program, inverse } = node as hbs.AST.BlockStatement
  return (
    isLink(path) &&
    params.length === 0 &&
    hash === undefined &&
    inverse === undefined &&
    program?.blockParams === undefined
  )
}

const isLink = (path: hbs.AST.Expression) => (path as hbs.AST.PathExpression).original === 'link'

type Program = hbs.AST.Program

const replaced = (
  source: Program,
  by: (part: hbs.AST.BlockStatement) => hbs.AST.Statement[],
): Program => ({
  ...source,
  body: source.body.flatMap((node) => (isLinkPart(node) ? by(node) : [node])),
})

export const withLink = (source: Program) => replaced(source, ({ program }) => program.body)
export const withoutLink = (source: Program) => replaced(source, () => [])

/** The line of the first `{{link}}` outside such a part. Undefined if there is none. */
export function lineOfBareLink(text: string): number | undefined {
  const node = Handlebars.parse(text).body.find((each) => {
    const { path } = each as Partial<hbs.AST.MustacheStatement>
    return each.type === 'MustacheStatement' && path?.type === 'PathExpression' && isLink(path)
  })
  return node?.loc.start.line
}

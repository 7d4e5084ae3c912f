/**
 * The link beside a code: the address of the scene's page, with the code in the fragment. A fragment never reaches a server,
 * so scanners and logs get nothing from it, and opening the page changes nothing.
 */
export type Links = ReadonlyMap<string, string>

/** Undefined if the scene has no link. */
export function linkOf(links: Links, scene: string, code: string, id: string): string | undefined {
  const address = links.get(scene)
  return address && `${address}#postern-code=${code}&id=${id}`
}

const anyId = '00000000-0000-7000-8000-000000000000'

/** The longest link of any scene, for the length of a message. Undefined if no scene has a link. */
export function longestLink(links: Links, codeDigits: number): string | undefined {
  const all = [...links.keys()].flatMap(
    (scene) => linkOf(links, scene, '0'.repeat(codeDigits), anyId) ?? [],
  )
  return all.sort((a, b) => b.length - a.length)[0]
}

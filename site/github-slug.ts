/** The anchor of a heading, as GitHub makes it. So a link works there and on the site. */
export const githubSlug = (title: string): string =>
  title
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

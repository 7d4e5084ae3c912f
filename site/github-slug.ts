/** A heading's anchor as GitHub makes it, so that a link holds there and on the site. */
export const githubSlug = (title: string): string =>
  title
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

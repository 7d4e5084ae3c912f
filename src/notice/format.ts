/**
 * The format of a row: how a worker reads its variables, and where Redis has its code. A worker that does not know the format
 * of a row leaves it pending, and a worker of a newer version sends it (I27). So during an upgrade no code is taken for
 * lost.
 *
 * A version that stores codes or variables in another way writes the next number. Its workers must also read the previous
 * one. Processes from before this column wrote the first format.
 */
export const noticeFormat = 1
/** The code has an id apart from its notice's. */
export const wayFormat = 2

export const isKnownFormat = (format: number): boolean => [noticeFormat, wayFormat].includes(format)

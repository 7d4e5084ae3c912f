/** The scene of a code whose request names none. */
export const defaultScene = 'default'

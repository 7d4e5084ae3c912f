/** The calls of the HTTP as functions, for a host and for plugins. */
export type PosternCalls = object

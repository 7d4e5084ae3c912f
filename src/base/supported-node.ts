/**
 * Imported before anything else by what a host imports: on an older Node another module would end its process with a
 * riddle such as "Map.groupBy is not a function". The processes of Postern run on the Node that npm installs with it.
 */
const [major = 0] = process.versions.node.split('.').map(Number)
if (major < 22) {
  throw new Error(
    `postern needs Node 22 or newer in your app, and this is Node ${process.versions.node}. Start your app with a newer Node, or run Postern as processes of its own: they bring theirs.`,
  )
}

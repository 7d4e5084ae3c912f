/**
 * The entry points for host apps import this first. On an older Node another module would end the process with an
 * error such as "Map.groupBy is not a function". Postern's processes run on the Node that npm installs with it.
 */
const [major = 0] = process.versions.node.split('.').map(Number)
if (major < 22) {
  throw new Error(
    `postern needs Node 22 or newer in your app, and this is Node ${process.versions.node}. Start your app with a newer Node, or run Postern as separate processes, which include a Node.`,
  )
}

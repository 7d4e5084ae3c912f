/** The server that asks whether the pass is good is that of examples/plain-form. */
export default { server: { port: 5173, proxy: { '/signup': 'http://localhost:8080' } } }

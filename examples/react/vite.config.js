/** The server of examples/plain-form asks Postern if the pass is valid. */
export default { server: { port: 5173, proxy: { '/signup': 'http://localhost:8080' } } }

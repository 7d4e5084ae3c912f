import vue from '@vitejs/plugin-vue'

const isCustomElement = (tag) => tag === 'postern-code'

/** The server of examples/plain-form asks Postern if the pass is valid. */
export default {
  plugins: [vue({ template: { compilerOptions: { isCustomElement } } })],
  server: { port: 5173, proxy: { '/signup': 'http://localhost:8080' } },
}

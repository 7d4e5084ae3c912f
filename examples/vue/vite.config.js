import vue from '@vitejs/plugin-vue'

const isCustomElement = (tag) => tag === 'postern-code'

/** The server that asks whether the pass is good is that of examples/plain-form. */
export default {
  plugins: [vue({ template: { compilerOptions: { isCustomElement } } })],
  server: { port: 5173, proxy: { '/signup': 'http://localhost:8080' } },
}

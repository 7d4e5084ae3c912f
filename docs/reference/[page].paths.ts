/** The pages that the site's build makes from the code: see site/reference.ts. */
import { callsPage, environmentPage } from '../../site/reference.ts'

export default {
  paths: async () => [
    { params: { page: 'calls' }, content: await callsPage() },
    { params: { page: 'environment' }, content: environmentPage() },
  ],
}

/** The pages that the site's build makes from the code: see site/reference.ts and site/sms-rules.ts. */
import { callsPage, environmentPage } from '../../site/reference.ts'
import { smsRulesPage } from '../../site/sms-rules.ts'

export default {
  paths: async () => [
    { params: { page: 'calls' }, content: await callsPage() },
    { params: { page: 'environment' }, content: environmentPage() },
    { params: { page: 'sms-rules' }, content: smsRulesPage() },
  ],
}

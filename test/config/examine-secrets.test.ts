import { expect, test } from 'vitest'
import { examineSecrets } from '../../src/config/examine-secrets.ts'

const random = '7f3c9a51e0b84d26c5a1f7039e8d6b42'

test('a SECRET with quotes or a line break around it, which another process may lack → a warning without the secret', () => {
  for (const SECRET of [`"${random}"`, `'${random}'`, `${random}\n`, ` ${random}`]) {
    const [finding] = examineSecrets({ SECRET })
    expect(finding).toMatchObject({
      state: 'warning',
      message: 'SECRET begins or ends with quotes, spaces or a line break, which are a part of it',
    })
    expect(JSON.stringify(finding)).not.toContain(random)
  }
  expect(examineSecrets({ SECRET: random })).toMatchObject([{ state: 'ok' }])
})

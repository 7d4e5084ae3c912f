/** Codes for several notices: one budget of tries, and digits for each notice. */
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { type CodeOwner, createCodeStore, type SharedOwner } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const redis = await testRedis()
const connection = await redis.connect('code')
const oldSecret = 'the first secret, of thirty-two bytes or more'
const newSecret = 'the second secret, of thirty-two bytes or more'

function storeOf(secret = oldSecret, previous?: string, ttlMs = 300_000) {
  const store = createCodeStore(connection, createSecrets(secret, previous), {
    keyPrefix: redis.prefix,
    ttlMs,
    triesPerCode: 3,
  })
  releaseLater(() => store.close())
  return store
}
const store = storeOf()
type Store = typeof store

/** A verification of a number, and perhaps of an address of mail. */
function newHome(email = 'person@shop.test'): SharedOwner {
  const to = '+8613800138000'
  return { app: newId(), scene: 'login', channel: 'sms', to, addresses: { sms: to, email } }
}

const ownerOf = (home: SharedOwner, channel: 'sms' | 'email'): CodeOwner => ({
  app: home.app,
  scene: home.scene,
  channel,
  to: String(home.addresses[channel]),
})

/** Sends the digits of a notice, as a send does: stored, and settled after the commit. */
async function send(
  codeId: string,
  home: SharedOwner,
  channel: 'sms' | 'email',
  code: string,
  {
    isFirst = false,
    by = store as Store,
    id = newId(),
    onPass = undefined as string | undefined,
  } = {},
) {
  const owner = ownerOf(home, channel)
  const added = { noticeId: id, owner, code, onPass, isFirst, mayRepeat: false }
  const result = await by.add(codeId, home, added)
  return result === 'pending' ? by.settle(owner, id, codeId) : result
}

async function sendPlain(owner: CodeOwner, code: string, by = store, id = newId()) {
  if (await by.remember(owner, id, code)) expect(await by.settle(owner, id)).toBe('current')
  return id
}

async function twoWays(by = store) {
  const [home, codeId, sms, email] = [newHome(), newId(), newId(), newId()]
  await send(codeId, home, 'sms', '1111', { isFirst: true, id: sms, onPass: 'of sms', by })
  expect(await send(codeId, home, 'email', '2222', { id: email, onPass: 'of email', by })).toBe(
    'current',
  )
  return { home, codeId, sms, email }
}

test('the digits of any notice pass by the id of the code, and name their notice', async () => {
  for (const which of ['sms', 'email'] as const) {
    const { home, codeId, ...ids } = await twoWays()
    expect(await store.findHome(home.app, codeId)).toEqual(home)
    const code = which === 'sms' ? '1111' : '2222'
    expect(await store.guess(home, code, codeId)).toEqual({
      result: 'passed',
      noticeId: ids[which],
      onPass: `of ${which}`,
      codeId,
      channel: which,
    })
    for (const each of ['1111', '2222']) {
      expect(await store.guess(home, each, codeId)).toEqual({ result: 'gone', reason: 'used' })
    }
    expect(await send(codeId, home, 'email', '3333')).toBe('gone')
  }
})

test('the code is found by each of its addresses, and passes there with the digits of that address alone', async () => {
  const { home, codeId, email } = await twoWays()
  const byMail = ownerOf(home, 'email')
  const live = await store.look(byMail)
  expect(live).toMatchObject({ result: 'live', triesLeft: 3, length: 4 })
  const shared = 'shared' in live ? live.shared : undefined
  expect(shared?.codeId).toBe(codeId)
  expect(new Set(shared?.channels)).toEqual(new Set(['sms', 'email']))
  const atMail = { ...home, addresses: { email: byMail.to } }
  expect(await store.guess(atMail, '1111', codeId)).toMatchObject({ result: 'mismatch' })
  expect(await store.guess(atMail, '2222', codeId)).toMatchObject({
    result: 'passed',
    noticeId: email,
  })
})

test('one budget of tries counts for all digits, and its end ends all', async () => {
  const { home, codeId } = await twoWays()
  expect(await store.guess(home, '0000', codeId)).toMatchObject({ triesLeft: 2 })
  expect(await store.guess(home, '0000', codeId)).toMatchObject({ triesLeft: 1 })
  expect(await store.guess(home, '0000', codeId)).toEqual({
    result: 'mismatch',
    triesLeft: 0,
    noticeId: codeId,
    codeId,
  })
  for (const code of ['1111', '2222']) {
    expect(await store.guess(home, code, codeId)).toEqual({ result: 'gone', reason: 'tries' })
  }
  expect(await send(codeId, home, 'email', '3333')).toBe('gone')
})

test('digits that were stored pass only from settle on; after a right code, settle finds them gone', async () => {
  const { home, codeId } = await twoWays()
  const [id, owner] = [newId(), ownerOf(home, 'email')]
  const digits = { noticeId: id, owner, code: '3333', isFirst: false, mayRepeat: false }
  expect(await store.add(codeId, home, digits)).toBe('pending')
  expect(await store.guess(home, '3333', codeId)).toMatchObject({ result: 'mismatch' })
  expect(await store.guess(home, '1111', codeId)).toMatchObject({ result: 'passed' })
  expect(await store.settle(owner, id, codeId)).toBe('gone')
})

test('a right guess that is taken back passes again, also with the digits of another notice', async () => {
  const { home, codeId } = await twoWays()
  const keyId = newId()
  const guess = () => store.guess(home, '1111', codeId, { keyId, proof: 'the proof' })
  expect(await guess()).toMatchObject({ result: 'passed' })
  expect(await guess()).toEqual({
    result: 'repeated',
    noticeId: codeId,
    proof: 'the proof',
    channel: 'sms',
  })
  expect(await store.guess(home, '2222', codeId, { keyId, proof: 'x' })).toMatchObject({
    result: 'gone',
  })
  expect(await guess()).toMatchObject({ result: 'gone' })
})

test('the same digits for a second notice are refused, except for a test recipient', async () => {
  const { home, codeId } = await twoWays()
  expect(await send(codeId, home, 'email', '1111')).toBe('same')
  const owner = ownerOf(home, 'email')
  const digits = { noticeId: newId(), owner, code: '1111', isFirst: false, mayRepeat: true }
  expect(await store.add(codeId, home, digits)).toBe('pending')
})

test('a send to the number replaces all digits, and so does a send to the address of mail', async () => {
  for (const channel of ['sms', 'email'] as const) {
    const { home, codeId } = await twoWays()
    const id = await sendPlain(ownerOf(home, channel), '3333')
    expect(await send(codeId, home, 'email', '4444')).toBe('gone')
    expect((await store.look(home, codeId)).result).toBe('gone')
    expect(await store.guess(ownerOf(home, channel), '3333')).toMatchObject({ noticeId: id })
  }
})

test('a code with several notices replaces the codes of its channels when they are sent, and codes of other scenes stay', async () => {
  const home = newHome()
  for (const channel of ['sms', 'email'] as const) await sendPlain(ownerOf(home, channel), '5555')
  const other = { ...ownerOf(home, 'sms'), scene: 'pay' }
  await sendPlain(other, '5555')
  const codeId = newId()
  expect(await send(codeId, home, 'sms', '1111', { isFirst: true })).toBe('current')
  expect(await store.guess(ownerOf(home, 'email'), '5554')).toMatchObject({ triesLeft: 2 })
  expect(await send(codeId, home, 'email', '2222')).toBe('current')
  const { shared } = (await store.look(ownerOf(home, 'email'))) as { shared?: { codeId: string } }
  expect(shared?.codeId).toBe(codeId)
  expect(await store.guess(other, '5555')).toMatchObject({ result: 'passed' })
})

test('a second code for several notices ends the first, by any of their addresses', async () => {
  const { home, codeId } = await twoWays()
  const [second, number] = [newId(), '+8613800138001']
  const elsewhere = {
    ...home,
    to: number,
    addresses: { sms: number, email: home.addresses.email ?? '' },
  }
  await send(second, elsewhere, 'sms', '7777', { isFirst: true })
  expect((await store.look(home, codeId)).result).toBe('live')
  expect(await send(second, elsewhere, 'email', '8888')).toBe('current')
  expect((await store.look(home, codeId)).result).toBe('gone')
  expect(await store.guess(elsewhere, '8888', second)).toMatchObject({ result: 'passed' })
})

test('an undone first notice leaves the old code; an undone later notice leaves the others', async () => {
  const home = newHome()
  await sendPlain(ownerOf(home, 'sms'), '5555')
  const [codeId, first, later] = [newId(), newId(), newId()]
  const digits = (noticeId: string, channel: 'sms' | 'email', code: string, isFirst: boolean) =>
    store.add(codeId, home, {
      noticeId,
      owner: ownerOf(home, channel),
      code,
      isFirst,
      mayRepeat: false,
    })
  await digits(first, 'sms', '1111', true)
  store.forget(home, first, codeId)
  await eventually(async () => expect(await store.settle(home, first, codeId)).toBe('gone'))
  expect(await store.guess(ownerOf(home, 'sms'), '5555')).toMatchObject({ result: 'passed' })

  const { codeId: live, home: other, sms } = await twoWays()
  const owner = ownerOf(other, 'email')
  await store.add(live, other, {
    noticeId: later,
    owner,
    code: '3333',
    isFirst: false,
    mayRepeat: false,
  })
  store.forget(other, later, live)
  await eventually(async () => expect(await store.settle(other, later, live)).toBe('gone'))
  expect(await store.guess(other, '1111', live)).toMatchObject({ result: 'passed', noticeId: sms })
})

test('support ends all digits from any address', async () => {
  const { home, codeId } = await twoWays()
  await store.drop(ownerOf(home, 'email'))
  expect(await store.guess(home, '1111', codeId)).toEqual({ result: 'gone', reason: 'used' })
})

test('another app finds nothing by the id', async () => {
  const { codeId } = await twoWays()
  expect(await store.findHome('other', codeId)).toBeUndefined()
})

test('when the latest digits end, no further notice begins', async () => {
  const brief = storeOf(oldSecret, undefined, 40)
  const [home, codeId] = [newHome(), newId()]
  await send(codeId, home, 'sms', '1111', { isFirst: true, by: brief })
  await eventually(async () => expect((await brief.look(home, codeId)).result).toBe('gone'))
  expect(await send(codeId, home, 'email', '2222', { by: brief })).toBe('gone')
})

test('during a rotation of SECRET, a later notice joins the code where it lies, and both pass (F40)', async () => {
  const rotated = storeOf(newSecret, oldSecret)
  const [home, codeId] = [newHome(), newId()]
  await send(codeId, home, 'sms', '1111', { isFirst: true })
  expect(await send(codeId, home, 'email', '2222', { by: rotated })).toBe('current')
  expect(await rotated.findHome(home.app, codeId)).toEqual(home)
  expect(await rotated.guess(home, '0000', codeId)).toMatchObject({ triesLeft: 2 })
  const byMail = await rotated.look(ownerOf(home, 'email'))
  expect(byMail).toMatchObject({ result: 'live', triesLeft: 2 })
  expect(await rotated.guess(home, '2222', codeId)).toMatchObject({ result: 'passed' })
  expect(await send(codeId, home, 'email', '3333')).toBe('gone')
})

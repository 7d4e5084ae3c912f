/** Sends, checks, reads and ends verifications. */
import type { Channel } from '../../base/channel.ts'
import type { PosternCalls } from '../../http/in-process.ts'
import type { NoticeView } from '../../http/notice-reads.ts'
import type { Answer } from '../../http/problem.ts'
import type { Asked, Services } from './asked.ts'
import { channelNamed, nameOf } from './channels.ts'
import { fault, faultOf } from './faults.ts'
import { noticeIdOf, sidOf, timeOf } from './sids.ts'

/** The facts of a verification in an answer. */
interface Shown {
  id: string | undefined
  to: string | null
  channel: Channel
  status: string
}

/** Twilio's channels that Postern does not have. */
const otherChannels = ['sna', 'auto', 'rbm', 'rcs', 'push', 'totp']

/** These parameters change the text of a message or the meaning of a code. Other unknown parameters are ignored. */
const unsupported = ['CustomMessage', 'Amount', 'Payee', 'SendDigits', 'SnaClientToken']

export function createVerifications(postern: PosternCalls, services: Services) {
  /** Calls `run` with the scene of the service and with the form's texts. */
  const inService =
    (
      run: (asked: Asked, scene: string, form: Readonly<Record<string, string>>) => Promise<Answer>,
    ) =>
    async (asked: Asked): Promise<Answer> => {
      const { service = '' } = asked.params
      const found = Object.hasOwn(services, service) ? services[service] : undefined
      if (found?.app !== asked.account.app) return fault(20404)
      const form: Record<string, string> = {}
      for (const [name, value] of Object.entries(asked.form)) {
        // The parameter occurs twice. The limits would count only one of its values.
        if (typeof value !== 'string') return fault(60200, `${name.slice(0, 100)} is there twice`)
        if (unsupported.includes(name)) return fault(60200, `${name} is not supported`)
        form[name] = name === 'To' ? plusOf(value) : value
      }
      return run(asked, found.scene, form)
    }

  const send = inService(async (asked, scene, { To, Channel, Locale, CustomCode, DeviceIp }) => {
    if (!To) return fault(60200, 'To')
    if (Channel && otherChannels.includes(Channel)) return fault(60223, Channel)
    const channel = channelNamed(Channel ?? '')
    if (!channel) return fault(60200, 'Channel')
    const { app, keyId } = asked.account
    const sent = await postern.sendCaptcha({
      ...{ app, keyId, channel, to: To, scene },
      ...personAt(DeviceIp || asked.ip),
      ...(Locale ? { locale: Locale } : {}),
      ...(CustomCode === undefined ? {} : { code: CustomCode }),
    })
    if (sent.outcome !== 'accepted') return faultOf(sent, 60203)
    const { id } = sent
    const body = viewOf(asked, { id, to: To, channel, status: 'pending' })
    return { status: 201, body }
  })

  const check = inService(async (asked, scene, { To, VerificationSid, Code }) => {
    if (!Code) return fault(60200, 'Code')
    if (!To && !VerificationSid) return fault(60200, 'To or VerificationSid')
    const notice = VerificationSid ? await find(asked, scene, VerificationSid) : undefined
    if (notice && 'status' in notice) return notice
    // A check by number is about the latest code, whose channel is not in the form. It needs no PostgreSQL for SMS.
    const found = notice ?? (await find(asked, scene, To ?? ''))
    const latest = 'status' in found ? undefined : found
    const { app, keyId } = asked.account
    const channel = latest?.channel ?? firstChannelOf(To ?? '')
    // No valid code is so long, so a code that is cut here stays wrong.
    const guess = { app, keyId, code: Code.slice(0, 100), anyForm: true, ...personAt(asked.ip) }
    const id = notice && { id: notice.id }
    const checked = await postern.checkCaptcha(
      To ? { ...guess, ...id, channel, to: To, scene } : { ...guess, id: notice?.id ?? '' },
    )
    const { outcome } = checked
    if (outcome !== 'passed' && outcome !== 'code_mismatch') return faultOf(checked, 60202)
    const known = outcome === 'passed' ? checked.id : latest?.id
    return {
      status: 200,
      body: viewOf(asked, {
        id: known,
        to: To ?? notice?.to ?? null,
        channel,
        status: outcome === 'passed' ? 'approved' : 'pending',
      }),
    }
  })

  const fetch = inService(async (asked, scene) => {
    const notice = await find(asked, scene, asked.params.sid ?? '')
    if ('status' in notice) return notice
    const status = statusOf(notice, postern.nowMs())
    return { status: 200, body: viewOf(asked, { ...notice, status }) }
  })

  const update = inService(async (asked, scene, { Status }) => {
    if (Status !== 'canceled' && Status !== 'approved') return fault(60200, 'Status')
    const notice = await find(asked, scene, asked.params.sid ?? '')
    if ('status' in notice) return notice
    const { app } = asked.account
    const { id } = notice
    const ended = await postern.cancelCaptcha({ app, id, isPassed: Status === 'approved' })
    if (ended.outcome !== 'canceled') {
      return ended.outcome === 'unavailable' ? fault(20503) : fault(20404)
    }
    return { status: 200, body: viewOf(asked, { ...notice, status: Status }) }
  })

  /** The verification with this SID, or the latest one to this recipient. If there is none, the error. */
  async function find(asked: Asked, scene: string, sidOrTo: string): Promise<NoticeView | Answer> {
    const { app } = asked.account
    const id = noticeIdOf('VE', sidOrTo)
    if (id) {
      const found = await postern.findNotice({ app, id })
      if (found.outcome !== 'found') return faultOf(found, 60202)
      return found.notice.scene === scene ? found.notice : fault(20404)
    }
    const found = await postern.searchNotices({
      ...{ app, to: sidOrTo, kind: 'captcha', scenes: [scene], limit: 1 },
    })
    if (found.outcome === 'unavailable') return fault(20503)
    const [notice] = found.outcome === 'found' ? found.items : []
    return notice ?? fault(20404)
  }

  return { send, check, fetch, update }
}

/** A `+` that a client has not escaped is a space in a form. */
const plusOf = (to: string) => to.replace(/^ (?=\d)/, '+')

const personAt = (ip: string | undefined) => (ip ? { ip } : {})

const firstChannelOf = (to: string): Channel => (to.includes('@') ? 'email' : 'sms')

function statusOf({ codeEnd, state, expiresAt }: NoticeView, nowMs: number): string {
  if (codeEnd === 'passed') return 'approved'
  if (codeEnd) return codeEnd === 'tries' ? 'max_attempts_reached' : codeEnd
  if (state === 'failed') return 'failed'
  return Date.parse(expiresAt) <= nowMs ? 'expired' : 'pending'
}

/** The members of a verification and of a check. A number is masked unless the client has sent it. */
function viewOf({ account, params, urlOf }: Asked, { id, to, channel, status }: Shown) {
  const { service = '' } = params
  const sid = id === undefined ? null : sidOf('VE', id)
  const name = nameOf(channel)
  const at = id === undefined ? null : timeOf(id)
  return {
    sid,
    service_sid: service,
    account_sid: account.sid,
    to,
    channel: name,
    status,
    valid: status === 'approved',
    lookup: { carrier: null },
    amount: null,
    payee: null,
    send_code_attempts:
      id === undefined ? [] : [{ attempt_sid: sidOf('VL', id), channel: name, time: at }],
    sna: null,
    sna_attempts_error_codes: null,
    date_created: at,
    date_updated: at,
    url: sid && urlOf(`/v2/Services/${service}/Verifications/${sid}`),
  }
}

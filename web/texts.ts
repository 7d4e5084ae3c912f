/** Texts of the field. Each text of a refusal gives the next step. */
import type { Channel } from './client.ts'

const en = {
  smsLabel: 'Mobile number',
  emailLabel: 'Email address',
  country: 'Country or region',
  smsGiven: 'You will get a code by text message.',
  emailGiven: 'You will get a code by email.',
  givenTo: 'You will get a code at {to}.',
  send: 'Send code',
  sendIn: 'Send code in {time}',
  again: 'Send again',
  againIn: 'Send again in {time}',
  codeLabel: 'Code sent to {to}',
  useSms: 'Use a text message instead',
  useEmail: 'Use email instead',
  smsChange: 'Change number',
  emailChange: 'Change address',
  sending: 'Sending…',
  sent: 'A code of {n} digits is on its way.',
  sentEmail: 'A code of {n} digits is on its way. Look in your spam folder too.',
  sentAgain: 'A new code of {n} digits is on its way. The old code no longer works.',
  sentAgainEmail:
    'A new code of {n} digits is on its way. Look in your spam folder too. The old code no longer works.',
  sentLocked: 'A code is on its way. After too many wrong codes, you can type it only from {at}.',
  canResend: 'If it does not arrive, you can ask for a new one now.',
  noCode: 'That text does not have exactly one code of {n} digits. Type the code.',
  checking: 'Checking…',
  passed: 'Confirmed.',
  solving: 'Making sure you are a person. This takes a few seconds…',
  challenge: 'Please answer the question below to go on.',
  challengeFailed: 'That could not be confirmed. Try again.',
  wrong: 'This code is wrong. You have {n} tries left.',
  wrongOne: 'This code is wrong. You have one try left.',
  wrongLast: 'This code was wrong, and no try is left.',
  gone: 'This code is no longer valid.',
  expired: 'This code has expired.',
  askNew: 'Ask for a new one.',
  askNewLater: 'You can ask for a new one when the countdown ends.',
  limited: 'Too many codes were asked for. Try again when the countdown ends.',
  limitedOther:
    'Too many codes were asked for. Wait for the countdown, or use the other way below.',
  locked: 'Too many wrong codes. You can ask for a new one at {at}.',
  canType: 'You can type the code now.',
  ready: 'You can ask for a code now.',
  smsEmpty: 'Enter your mobile number first.',
  emailEmpty: 'Enter your email address first.',
  smsNational:
    'No code can be sent to this number. Write it with + and its country code, as in +86 138 0013 8000.',
  smsInvalid: 'This is not a mobile number. Check it, with its country code.',
  emailInvalid: 'This is not an email address. Check how it is spelled.',
  smsNotAllowed: 'No codes are sent to this number. Use another one.',
  emailNotAllowed: 'No codes are sent to this address. Use another one.',
  offline: 'You are offline. Connect to the internet, then try again.',
  unavailable: 'The service does not answer right now. Wait a moment, then try again.',
  setup: 'This form has a setup error. Please tell the owner of this site.',
  otherOrigin: 'This form is not allowed at {origin}. Please tell the owner of this site.',
  passExpired: 'That was confirmed too long ago. Ask for a new code.',
  required: 'Confirm this with a code first.',
}

export type TextName = keyof typeof en
/** Values for the names in braces. */
export type Values = Readonly<Record<string, string | number>>
export type Texts = Readonly<Record<TextName, string>>
/** Returns the text in the language of the page, with its values filled in. */
export type TextOf = (name: TextName, values?: Values) => string

const zh: Texts = {
  smsLabel: '手机号',
  emailLabel: '邮箱地址',
  country: '国家或地区',
  smsGiven: '验证码将以短信发送给您。',
  emailGiven: '验证码将发送到您的邮箱。',
  givenTo: '验证码将发送至 {to}。',
  send: '获取验证码',
  sendIn: '{time} 后可获取',
  again: '重新发送',
  againIn: '{time} 后可重发',
  codeLabel: '发送至 {to} 的验证码',
  useSms: '改用短信验证',
  useEmail: '改用邮箱验证',
  smsChange: '更换手机号',
  emailChange: '更换邮箱',
  sending: '正在发送…',
  sent: '{n} 位验证码已发出，请注意查收。',
  sentEmail: '{n} 位验证码已发出，请查收邮件，也请查看垃圾邮件。',
  sentAgain: '新的 {n} 位验证码已发出，之前的验证码已失效。',
  sentAgainEmail: '新的 {n} 位验证码已发出，请查收邮件，也请查看垃圾邮件。之前的验证码已失效。',
  sentLocked: '验证码已发出。由于错误次数过多，请在 {at} 之后输入。',
  canResend: '如未收到，现在可以重新获取。',
  noCode: '文本中没有或有多个 {n} 位验证码，请手动输入。',
  checking: '正在验证…',
  passed: '验证成功。',
  solving: '正在进行人机验证，请稍候几秒…',
  challenge: '请先完成下方的人机验证。',
  challengeFailed: '人机验证未通过，请重试。',
  wrong: '验证码错误，还可再试 {n} 次。',
  wrongOne: '验证码错误，还可再试 1 次。',
  wrongLast: '验证码错误，已无剩余次数。',
  gone: '验证码已失效。',
  expired: '验证码已过期。',
  askNew: '请重新获取。',
  askNewLater: '请在倒计时结束后重新获取。',
  limited: '获取过于频繁，请在倒计时结束后重试。',
  limitedOther: '获取过于频繁，请等待倒计时结束，或改用下方的其他方式。',
  locked: '错误次数过多，请在 {at} 之后重新获取验证码。',
  canType: '现在可以输入验证码了。',
  ready: '现在可以获取验证码了。',
  smsEmpty: '请先输入手机号。',
  emailEmpty: '请先输入邮箱地址。',
  smsNational: '无法向该号码发送短信，请写上 + 和国家/地区代码，例如 +86 138 0013 8000。',
  smsInvalid: '手机号无效，请检查号码和国家/地区代码。',
  emailInvalid: '邮箱地址无效，请检查拼写。',
  smsNotAllowed: '无法向该号码发送验证码，请换一个号码。',
  emailNotAllowed: '无法向该邮箱发送验证码，请换一个邮箱。',
  offline: '网络已断开，请连接网络后重试。',
  unavailable: '服务暂时无响应，请稍后重试。',
  setup: '此表单配置有误，请联系网站管理员。',
  otherOrigin: '此表单不允许在 {origin} 使用，请联系网站管理员。',
  passExpired: '验证已过期，请重新获取验证码。',
  required: '请先完成验证码验证。',
}

export const textsOf = (language: string): Texts => (/^zh\b/i.test(language) ? zh : en)

/** The name of a text that each channel has, e.g. `smsLabel`. */
export const ofChannel = (channel: Channel, name: string) => `${channel}${name}` as TextName

export const fill = (text: string, values: Values = {}) =>
  text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ''))

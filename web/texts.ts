/** Texts of the field in English and Chinese. Each text of a refusal gives the next step. */
import type { Channel } from './client.ts'

export const texts = {
  smsLabel: ['Mobile number', '手机号'],
  emailLabel: ['Email address', '邮箱地址'],
  country: ['Country or region', '国家或地区'],
  smsGiven: ['You will get a code by text message.', '验证码将以短信发送给您。'],
  emailGiven: ['You will get a code by email.', '验证码将发送到您的邮箱。'],
  givenTo: ['You will get a code at {to}.', '验证码将发送至 {to}。'],
  send: ['Send code', '获取验证码'],
  sendIn: ['Send code in {time}', '{time} 后可获取'],
  enterCode: ['Enter the code', '输入验证码'],
  again: ['Send again', '重新发送'],
  againIn: ['Send again in {time}', '{time} 后可重发'],
  codeLabel: ['Code sent to {to}', '发送至 {to} 的验证码'],
  useSms: ['Use SMS instead', '改用短信验证'],
  useEmail: ['Use email instead', '改用邮箱验证'],
  smsChange: ['Change number', '更换手机号'],
  emailChange: ['Change address', '更换邮箱'],
  sending: ['Sending…', '正在发送…'],
  sent: ['A code of {n} digits is on its way.', '{n} 位验证码已发出，请注意查收。'],
  sentEmail: [
    'A code of {n} digits is on its way. Look in your spam folder too.',
    '{n} 位验证码已发出，请查收邮件，也请查看垃圾邮件。',
  ],
  sentAgain: [
    'A new code of {n} digits is on its way. The old code no longer works.',
    '新的 {n} 位验证码已发出，之前的验证码已失效。',
  ],
  sentAgainEmail: [
    'A new code of {n} digits is on its way. Look in your spam folder too. The old code no longer works.',
    '新的 {n} 位验证码已发出，请查收邮件，也请查看垃圾邮件。之前的验证码已失效。',
  ],
  sentLocked: [
    'A code is on its way. After too many wrong codes, you can type it only from {at}.',
    '验证码已发出。由于错误次数过多，请在 {at} 之后输入。',
  ],
  canResend: [
    'If it does not arrive, you can request a new one now.',
    '如未收到，现在可以重新获取。',
  ],
  noCode: [
    'That text does not have exactly one code of {n} digits. Type the code.',
    '文本中没有或有多个 {n} 位验证码，请手动输入。',
  ],
  checking: ['Checking…', '正在验证…'],
  passed: ['Confirmed.', '验证成功。'],
  solving: [
    'Making sure you are a person. This takes a few seconds…',
    '正在进行人机验证，请稍候几秒…',
  ],
  challenge: ['Please answer the question below to go on.', '请先完成下方的人机验证。'],
  challengeFailed: [
    'Could not confirm that you are a person. Try again.',
    '人机验证未通过，请重试。',
  ],
  wrong: ['This code is wrong. You have {n} tries left.', '验证码错误，还可再试 {n} 次。'],
  wrongOne: ['This code is wrong. You have one try left.', '验证码错误，还可再试 1 次。'],
  wrongLast: ['This code was wrong, and no try is left.', '验证码错误，已无剩余次数。'],
  gone: ['This code is no longer valid.', '验证码已失效。'],
  expired: ['This code has expired.', '验证码已过期。'],
  askNew: ['Request a new one.', '请重新获取。'],
  askNewLater: ['You can request a new one when the countdown ends.', '请在倒计时结束后重新获取。'],
  limited: [
    'Too many codes were requested. Try again when the countdown ends.',
    '获取过于频繁，请在倒计时结束后重试。',
  ],
  limitedOther: [
    'Too many codes were requested. Wait for the countdown, or use the other way below.',
    '获取过于频繁，请等待倒计时结束，或改用下方的其他方式。',
  ],
  locked: [
    'Too many wrong codes. You can request a new one at {at}.',
    '错误次数过多，请在 {at} 之后重新获取验证码。',
  ],
  checksLimited: [
    'Too many codes were tried. Type the code again at {at}.',
    '校验过于频繁，请在 {at} 之后重新输入验证码。',
  ],
  canType: ['You can type the code now.', '现在可以输入验证码了。'],
  ready: ['You can request a code now.', '现在可以获取验证码了。'],
  smsEmpty: ['Enter your mobile number first.', '请先输入手机号。'],
  emailEmpty: ['Enter your email address first.', '请先输入邮箱地址。'],
  smsNational: [
    'No code can be sent to this number. Write it with + and its country code, as in +86 138 0013 8000.',
    '无法向该号码发送短信，请写上 + 和国家/地区代码，例如 +86 138 0013 8000。',
  ],
  smsInvalid: [
    'This is not a mobile number. Check the number and its country code.',
    '手机号无效，请检查号码和国家/地区代码。',
  ],
  emailInvalid: [
    'This is not an email address. Check how it is spelled.',
    '邮箱地址无效，请检查拼写。',
  ],
  smsNotAllowed: [
    'No codes are sent to this number. Use another one.',
    '无法向该号码发送验证码，请换一个号码。',
  ],
  emailNotAllowed: [
    'No codes are sent to this address. Use another one.',
    '无法向该邮箱发送验证码，请换一个邮箱。',
  ],
  offline: [
    'You are offline. Connect to the internet, then try again.',
    '网络已断开，请连接网络后重试。',
  ],
  unavailable: [
    'The service does not answer right now. Wait a moment, then try again.',
    '服务暂时无响应，请稍后重试。',
  ],
  setup: [
    'This form has a setup error. Please tell the owner of this site.',
    '此表单配置有误，请联系网站管理员。',
  ],
  otherOrigin: [
    'This form is not allowed at {origin}. Please tell the owner of this site.',
    '此表单不允许在 {origin} 使用，请联系网站管理员。',
  ],
  passExpired: [
    'The confirmation has expired. Request a new code.',
    '验证已过期，请重新获取验证码。',
  ],
  required: ['Confirm this with a code first.', '请先完成验证码验证。'],
} satisfies Record<string, [english: string, chinese: string]>

export type TextName = keyof typeof texts
export type Values = Readonly<Record<string, string | number>>
export type Texts = Readonly<Record<TextName, string>>
/** Returns the text in the language of the page, with its values filled in. */
export type TextOf = (name: TextName, values?: Values) => string

/** The text in Chinese if the language is Chinese, otherwise in English. */
export const textIn = (language: string, name: TextName) =>
  texts[name][/^zh\b/i.test(language) ? 1 : 0]

/** The name of a text that each channel has, e.g. `smsLabel`. */
export const ofChannel = (channel: Channel, name: string) => `${channel}${name}` as TextName

export const fill = (text: string, values: Values = {}) =>
  text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ''))

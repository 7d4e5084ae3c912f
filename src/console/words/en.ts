import { commandLine } from '../../base/command-line.ts'
import { inRoughUnits } from '../../base/durations.ts'

const unitNames = { d: 'd', h: 'h', m: 'min', s: 's' }

/** Rounded up: `41 s`, `15 min`, `2 h`. */
function duration(ms: number): string {
  const { count, unit } = inRoughUnits(ms)
  return `${count} ${unitNames[unit]}`
}

/** Facts about a fault of the service. The sentences of `wrong` use them. */
export interface About {
  provider?: string
  /** Share of a provider's messages that it accepted, in the last two hours. */
  percent?: number
  kind?: 'captcha' | 'notice'
}

export const en = {
  duration,
  name: 'Postern console',
  skip: 'Skip to content',
  otherLanguage: '中文',
  signOut: 'Sign out',
  utc: 'Times are in UTC.',
  zone: 'Times are in your time zone:',
  stale: 'Not up to date. Last answer at',
  nav: {
    home: 'Today',
    notices: 'Notices',
    delivery: 'Delivery',
    rules: 'Rules',
    keys: 'Keys',
    events: 'Events',
    operations: 'Operations',
  },
  signIn: {
    title: 'Sign in',
    label: 'Operator key',
    hint: `It begins with pok_. Create one: ${commandLine('keys', 'create --kind operator --name YOU')}`,
    button: 'Sign in',
    wrong: 'This key does not exist or is revoked.',
    notOperator: 'This key is for the API. The console needs an operator key (pok_…).',
    wait: 'Too many wrong keys from this address. This key is wrong too. The right key works at once.',
  },
  problems: {
    back: 'Back to search',
    unavailable: 'Not available',
    unavailableText: (part: string) =>
      `${part === 'postgresql' ? 'PostgreSQL' : 'Redis'} does not answer, so this page has no data. The page works again when it answers.`,
    resetAgain: 'If you sent a reset, send it again: it may be recorded but only half done.',
    notFound: 'Not found',
    notFoundText: 'This page does not exist, or it belongs to an app that your key cannot see.',
    forbidden: 'Form refused',
    forbiddenText:
      'This form came from an earlier session, or not from a page of this console. If you signed in again in another tab, go back and reload the page. A proxy must pass on the Host header unchanged.',
    internal: 'Internal error',
    internalText: 'The log of this process has the details.',
    badRequest: 'Invalid request',
    badRequestText: 'The form or address cannot be read.',
  },
  search: {
    label: 'Phone number, email or notice id',
    placeholder: '+8613800138000',
    button: 'Look up',
    hint: 'Phone numbers need their country code. Spaces do not matter.',
    ip: 'IP address of the person (optional)',
    ipHint: 'With it, limits that count by IP address are shown too.',
    more: 'I know the IP address of the person',
    unreadable: 'Enter a phone number with its country code, a mail address or a notice id.',
    badIp: 'This is not an IP address.',
    overview: 'Service status',
    quiet: 'Messages are sent without delay.',
    notRead: 'PostgreSQL did not tell in time what waits. Reload the page in a minute.',
  },
  today: {
    title: 'The last 24 hours',
    ofApps: (apps: string) => `Figures of the app ${apps} alone.`,
    sent: 'Sent',
    delivered: 'Delivered (receipt)',
    failed: 'Failed or expired',
    refused: 'Refused by a rule',
    passed: 'Codes typed right',
    toProvider: 'Median time to the provider',
    toReceipt: 'Median time to the receipt',
    median: (ms: number) =>
      ms < 1_000
        ? `${Math.round(ms)} ms`
        : ms < 10_000
          ? `${(ms / 1_000).toFixed(1)} s`
          : duration(ms),
    counting: 'Earlier hours are still being counted. Reload the page in a few seconds.',
    notCounted: 'PostgreSQL did not count the messages in time. Reload the page in a minute.',
    cut: 'An hour has more than 50,000 notices. Its newest 50,000 are counted, so the figures are lower bounds.',
    byProvider: 'Messages by provider and hour',
    ofHour: (sent: string, failed: string) => `${sent} sent, ${failed} failed or expired`,
    now: 'now',
    numbers: 'Show the numbers',
    hour: 'Start of the hour',
    noMessages:
      'No message ended in the last 24 hours. Each provider will have a chart here: one bar an hour.',
    byRule: 'Refusals by rule',
    rule: 'Rule',
    challenged: 'Challenge required',
    noRefusals:
      'No rule refused a request in the last 24 hours. Rules that do will be listed here.',
  },
  wrong: {
    noWorker: () => [
      'No worker is running',
      `Nothing is sent. Start a worker: ${commandLine('worker')}.`,
    ],
    breaker: ({ provider }: About) => [
      `Workers have stopped calling the provider ${provider}`,
      'It failed five times in a row. Messages go to the next provider of the route or wait. Check the status page of the provider.',
    ],
    late: ({ kind }: About) => [
      `The oldest unsent ${kind === 'captcha' ? 'code' : 'notice'} is late`,
      'See which provider the waiting messages need, and whether a worker is running.',
    ],
    failing: ({ provider, percent }: About) => [
      `The provider ${provider} accepted only ${percent} % of its messages in the last two hours`,
      'See the reasons in the list of failed notices.',
    ],
    events: () => [
      'The receiver of events does not accept them',
      'Check the receiver. Postern gives up an event after one day.',
    ],
    dropped: () => [
      'Some refusals and checks were not recorded',
      'There were too many, perhaps an attack. A look-up may miss some; the counts by rule are complete.',
    ],
  } satisfies Record<string, (about: About) => string[]>,
  since: 'since',
  story: {
    now: 'Current state',
    timeline: 'Message timeline',
    empty: 'Nothing is recorded for this recipient.',
    erased:
      'The recipient of this notice was erased after the retention period. Only the notice itself is left.',
    app: 'App',
    mayAsk: 'This recipient can request a code now.',
    mayNotCheck: (ms: number) =>
      `Checks are locked for ${duration(ms)} after wrong codes. A new code does not end the lock.`,
    mayAskIn: (ms: number) => `This recipient can request a code in ${duration(ms)}.`,
    codes: 'Codes',
    noCodes: 'There is no valid code.',
    triesLeft: (tries: number) =>
      tries === 0 ? 'no tries left' : `${tries} ${tries === 1 ? 'try' : 'tries'} left`,
    until: 'until',
    limits: 'Limits reached',
    free: (rules: number) => `${rules} ${rules === 1 ? 'rule' : 'rules'} below the limit`,
    next: (ms: number) => `next in ${duration(ms)}`,
    locked: (ms: number) => `locked for ${duration(ms)}`,
    reveal: 'Show the full recipient',
    revealed: 'Shown in full for five minutes, only to you. This is recorded.',
    revealHint: 'Your name and this reason are recorded.',
    reset: 'Reset limits, lock or code',
    resetHint:
      'First confirm who the person is. Your name and this reason are recorded. Do not write personal data.',
    reason: 'Reason, for example a ticket number',
    resetButton: 'Reset',
    revealButton: 'Show',
    limitsChoice: 'Limits: a new code can be sent at once',
    lockChoice: 'Lock: codes can be checked again',
    codeChoice: 'Code: end a code that another person may have seen',
    done: 'Done and recorded.',
    noChoice: 'Choose what to reset.',
    badReason: 'Give a reason: one line of at most 500 characters.',
    namedReason:
      'The reason contains the recipient. Reasons are kept longer than recipients, so write the ticket number instead.',
    latest:
      'The latest 20 of each kind are shown. During an attack, refusals and checks may be missing.',
  },
  diagnoses: {
    test: [
      'This is a test recipient',
      'Postern sends it nothing: its fixed code is in the policy file. Use another number.',
    ],
    country: [
      'Messages to this country are not allowed',
      'Tell the person. The policy file decides this in recipients.countries.',
    ],
    type: [
      'Messages to this type of number are not allowed',
      'Tell the person. The policy file decides this in recipients.types.',
    ],
    recipient: [
      'Messages to this recipient are not allowed',
      'Tell the person. The policy file decides this in recipients.refuse.',
    ],
    mail_domain: [
      'Messages to this mail domain are not allowed',
      'Tell the person. The policy file decides this in recipients.mail.',
    ],
    locked: (ms: number) => [
      `Locked for ${duration(ms)}: too many wrong codes`,
      'A new code does not end the lock. If you have confirmed who the person is, reset the lock. If the person typed no wrong code, look up again with their IP address: the lock may apply only to another address.',
    ],
    lockedElsewhere: (ms: number) => [
      `Another IP address is locked for ${duration(ms)}: too many wrong codes`,
      'The IP address that you gave is not locked. The wrong codes came from the other address, perhaps from an attacker.',
    ],
    checksRefused: (rule: string, ms: number) => [
      `The rule “${rule}” refuses checks from this IP address for another ${duration(ms)}`,
      'Wait. A new code does not help, because all people at that address share the count.',
    ],
    refused: (rule: string, ms: number) => [
      `The rule “${rule}” refuses requests for another ${duration(ms)}`,
      'Wait, or reset the limits. A count that others share (an address, a country) cannot be reset.',
    ],
    refusedOver: (rule: string) => [
      `The rule “${rule}” refused the last request, but allows a new one`,
      'The person can request a code now.',
    ],
    challenged: (rule: string) => [
      `The rule “${rule}” requires a challenge from the page`,
      'The person must try again and wait until the page has finished the challenge.',
    ],
    pending: ['Not sent yet', 'Wait a minute. If many notices wait, open Delivery.'],
    sent: (provider: string) => [
      `${provider} accepted it; there is no receipt yet`,
      'If it does not arrive, ask the provider with its message id. Some providers send no receipts.',
    ],
    delivered: [
      'The carrier reports it as delivered',
      'Check other devices, the spam folder and blocked senders.',
    ],
    failed: (why: string) => ['Delivery failed', why],
    expired: (why: string) => ['Expired before it was sent', why],
    usedUpCode: [
      'Wrong codes were typed, and no code is valid any more',
      'Even the right code fails now. Request a new code and use the newest message.',
    ],
    mistyped: [
      'The code arrived, but a wrong code was typed',
      'Use the newest message: an older code is not valid.',
    ],
    goneCode: [
      'The typed code is no longer valid',
      'It expired, was used, was replaced by a newer code, or had no tries left. Request a new code and use the newest message.',
    ],
    passed: [
      'The code was correct and is used',
      'The problem comes after the code check: ask the team of the app.',
    ],
    nothing: [
      'No code was requested for this recipient',
      'Compare the number or address letter by letter. Ask the team of the app whether the app called Postern.',
    ],
  },
  errors: {
    invalid_recipient:
      'The provider does not know this number or mailbox, or the policy file refuses it.',
    not_delivered: 'A receipt reports that it did not arrive.',
    rejected: 'Every provider of the route rejected this message.',
    tries_used_up: 'All attempts failed: no provider accepted it.',
    outcome_unknown:
      'The last answer was lost. The message may have arrived, so it is not sent again.',
    no_route: 'No worker has a route for it.',
    not_rendered: 'No worker has its template, or the secret that opens its variables.',
    provider_away:
      'No provider could be reached before the notice expired, or the provider postponed nearly all messages.',
    postponed: 'Providers postponed messages to this recipient until the notice expired.',
    too_late: 'It waited longer than its time to live.',
    code_gone: 'The code was replaced, used or ended by support before the message was sent.',
    code_lost: 'Redis lost the code before the message was sent.',
    abandoned: 'The caller received 503, so it is not sent.',
  },
  events: {
    asked: (kind: string): string =>
      kind === 'captcha' ? 'Code requested: accepted' : 'Notice requested: accepted',
    scene: (scene: string) => `for ${scene}`,
    outcomes: {
      accepted: 'accepted it',
      rejected: 'rejected it',
      invalid_recipient: 'does not know the recipient',
      postponed: 'postponed the recipient',
      throttled: 'asked to wait',
      unavailable: 'not available, did not accept it',
      unknown: 'no answer, may have accepted it',
      not_taken: 'reported that it had not accepted it',
    },
    times: (count: number): string => `${count} times until`,
    lostWorker: 'A worker that died',
    delivered: 'Delivered',
    failed: 'Failed',
    expired: 'Expired',
    refused: (policy: string, rule: string) => `Refused by ${policy}.${rule}`,
    locked: (policy: string, rule: string) => `Locked by ${policy}.${rule}`,
    challenged: (policy: string, rule: string) => `Challenge required by ${policy}.${rule}`,
    until: 'until',
    checks: {
      passed: 'Code checked: correct',
      mismatch: 'Code checked: wrong',
      gone: 'Code checked: no longer valid',
      refused: 'Check refused: too many tries',
    },
    operations: {
      limits: 'limits reset',
      lock: 'lock lifted',
      code: 'code ended',
      reveal: 'shown in full',
    },
    took: (ms: number) => `${ms} ms`,
    trace: 'trace',
  },
  states: {
    pending: 'pending',
    sending: 'sending',
    sent: 'sent',
    delivered: 'delivered',
    failed: 'failed',
    expired: 'expired',
  },
  notices: {
    state: 'State',
    kind: 'Kind',
    template: 'Template',
    provider: 'Provider',
    time: 'Created',
    to: 'To',
    app: 'App',
    any: 'any',
    kinds: { captcha: 'code', notice: 'notice' },
    channels: { sms: 'SMS', email: 'email' },
    ages: { hour: 'last hour', day: 'last 24 hours', week: 'last 7 days', all: 'any time' },
    until: 'Until (UTC)',
    filter: 'Filter',
    none: 'No notice matches. Each notice is a line here; choose another state, provider or time.',
    lookedAt: (count: number) => `Searched ${count.toLocaleString('en')} notices.`,
    next: 'Older',
    first: 'Newest',
    erased: 'erased',
    why: 'Reason',
  },
  delivery: {
    queues: 'Queues',
    channel: 'Channel',
    jobs: { waiting: 'waiting', prioritized: 'bulk', delayed: 'delayed', active: 'active' },
    oldest: 'Oldest unsent',
    oldestEvent: 'Oldest undelivered event',
    scheduled: 'Scheduled for later',
    noneWaits: 'none',
    ofAllApps:
      'Waiting times, workers and providers belong to the whole service, not only to your app.',
    noFailed: 'Queues keep no failed jobs. See',
    failedNotices: 'failed notices',
    workers: (count: number) =>
      count === 0
        ? 'No worker is running, so nothing is sent.'
        : `${count} ${count === 1 ? 'worker is' : 'workers are'} running.`,
    providers: 'Providers',
    breaker: 'Circuit breaker',
    states: { ready: 'ready', paused: 'asked to wait', circuit: 'stopped after failures' },
    ofWorkers: (some: number, all: number) => `${some} of ${all} workers`,
    noWord: 'no report from workers',
    pace: 'Pace',
    noPace: 'not set',
    latest: 'Latest 1,000 notices',
    kind: 'Kind',
  },
  rules: {
    asked: {
      captcha: 'Applied before a code is sent',
      browser: 'Applied together with captcha, for publishable keys',
      'browser-check': 'Applied together with check, for publishable keys',
      notice: 'Applied before a notice is sent',
      check: 'Applied before a code is compared',
    },
    meaning: 'Meaning',
    other: 'Used by callers of the limiter and by login attempts',
    none: 'No limits.',
    note: `These rules are now in force in this process. ${commandLine('policy', 'explain')} prints the same sentences.`,
  },
  keys: {
    name: 'Name',
    kind: 'Kind',
    app: 'App',
    every: 'every app',
    prefix: 'Begins with',
    made: 'Created',
    used: 'Last used',
    never: 'never',
    state: 'State',
    active: 'active',
    ends: 'ends',
    revoked: 'revoked',
    note: `Create, replace and revoke keys with ${commandLine('keys')}. This page shows no key in full.`,
    none: `There are no keys. ${commandLine('keys', 'create')} makes one, and it will be listed here.`,
    ownSessions: 'Your sessions',
    everywhere: 'Sign out everywhere',
    everywhereHint:
      'Ends all sessions of your key, in this browser and all others. The key itself still works. If it is lost, have it revoked.',
  },
  waiting: {
    type: 'Event',
    since: 'Since',
    due: 'Next attempt',
    tries: 'Attempts',
    none: 'No events are waiting. Events that a receiver has not accepted are listed here.',
    note: 'Events that their receiver has not accepted yet. Postern gives up an event after one day.',
  },
  operations: {
    who: 'Who',
    what: 'What',
    reason: 'Reason',
    when: 'When',
    none: 'No operations yet. Each reset and each recipient shown in full will be listed here.',
    note: 'Resets, and recipients shown in full, by the console and by the API.',
    unknownKey: 'a deleted key',
  },
}

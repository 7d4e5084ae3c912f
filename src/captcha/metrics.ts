import type { Meter } from '../base/meter.ts'

export type CaptchaMetrics = ReturnType<typeof captchaMetrics>

export const captchaMetrics = ({ counter }: Meter) => ({
  checks: counter(
    'postern_checks_total',
    'Checked codes, by result: passed, mismatch, gone, refused.',
    { result: ['passed', 'mismatch', 'gone', 'refused'] },
  ),
  challenges: counter(
    'postern_challenges_total',
    'Challenges offered, and their answers by result.',
    {
      result: [
        'offered',
        'solved',
        'given_back',
        'wrong',
        'expired',
        'used',
        'malformed',
        'unavailable',
      ],
    },
  ),
})

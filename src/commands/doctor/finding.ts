/** What one look came to. `advice`: what to do about it. */
export interface Finding {
  readonly subject: string
  readonly state: 'ok' | 'warning' | 'error'
  readonly message: string
  readonly advice?: string
}

/** The findings of one subject are made of these. */
export function about(subject: string) {
  const finding =
    (state: Finding['state']) =>
    (message: string, advice?: string): Finding => ({
      subject,
      state,
      message,
      ...(advice === undefined ? {} : { advice }),
    })
  return { ok: finding('ok'), warning: finding('warning'), error: finding('error') }
}

/**
 * The code out of the text message, where the browser can read it (WebOTP: Chrome on Android). The message has to
 * end with `@example.org #1234`. It asks the person first.
 */
export async function readCodeFromMessage(signal: AbortSignal): Promise<string | undefined> {
  if (!('OTPCredential' in globalThis)) return undefined
  try {
    const options = { otp: { transport: ['sms'] }, signal } as CredentialRequestOptions
    const credential = await navigator.credentials.get(options)
    return (credential as { code?: string } | null)?.code
  } catch {
    // Refused, aborted, or not allowed by the page's Permissions-Policy.
    return undefined
  }
}

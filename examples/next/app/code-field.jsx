'use client'
import { useEffect } from 'react'

/** The script comes after React has taken the server's page over: what it draws into the element is none of React's. */
export default function CodeField({ src, publishableKey }) {
  useEffect(() => {
    import(
      /* webpackIgnore: true */ /* turbopackIgnore: true */ `${src}/browser/postern-code.0.1.0.js`
    )
  }, [src])
  return (
    <postern-code
      publishable-key={publishableKey}
      src={src}
      scene="signup"
      channels="sms,email"
      required
    />
  )
}

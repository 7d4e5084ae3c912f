/** For pages in TypeScript: put this file into `src`. */
import type { DetailedHTMLProps, HTMLAttributes } from 'react'

interface FieldAttributes extends HTMLAttributes<HTMLElement> {
  'publishable-key': string
  src: string
  scene?: string
  channels?: string
  country?: string
  countries?: string
  to?: string
  for?: string
  required?: boolean
  autosubmit?: boolean
  onsent?: (event: CustomEvent<{ id: string; to: string; expiresAt: string }>) => void
  onpassed?: (event: CustomEvent<{ pass: string; channel: string; to: string }>) => void
  onrefused?: (event: CustomEvent<{ during: string; problem: { code: string } }>) => void
}

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'postern-code': DetailedHTMLProps<FieldAttributes, HTMLElement>
    }
  }
}

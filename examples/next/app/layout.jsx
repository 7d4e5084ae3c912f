export const metadata = { title: 'Sign up' }
export const viewport = { colorScheme: 'light dark' }

/** Keeps the field's room until its script is there. */
const reserved = `
  postern-code:not(:defined) { display: block }
  postern-code:not(:defined)::after { content: ""; display: block; padding-top: clamp(154.2px, (432px - 100%) * 999, 229.8px) }`

export default function Layout({ children }) {
  return (
    <html lang="en">
      <head>
        <style>{reserved}</style>
      </head>
      <body>{children}</body>
    </html>
  )
}

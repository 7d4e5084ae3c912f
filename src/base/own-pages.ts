import helmet from 'helmet'

/** Headers of our own pages: nothing comes from elsewhere, nothing runs but our own files, and no other site frames them. */
export const protectOwnPages = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // With `no-referrer` browsers would call the origin of a form `null`.
  referrerPolicy: { policy: 'same-origin' },
  // For the proxy that ends TLS to say, and for its whole domain.
  strictTransportSecurity: false,
})

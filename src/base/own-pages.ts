import helmet from 'helmet'

/** Headers of Postern's pages: only files of this server load and run, and no other site can frame a page. */
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
  // With `no-referrer`, browsers would send `null` as the origin of a form.
  referrerPolicy: { policy: 'same-origin' },
  // HSTS covers a whole domain, so the proxy that ends TLS decides about it.
  strictTransportSecurity: false,
})

/** For tests without tokens of known browsers: all callers are strangers. */
export const noKnownBrowsers = {
  laneOf: async () => 'stranger' as const,
  laneOfAny: async () => 'stranger' as const,
  issue: async () => ({}),
}

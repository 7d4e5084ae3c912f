/** For tests without tokens of known browsers: all callers are strangers. */
export const noKnownBrowsers = { laneOf: async () => 'stranger' as const, issue: async () => ({}) }

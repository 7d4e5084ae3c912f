/**
 * Pictures of a page as WebP, still or moving. Chromium encodes the frames, and this file writes the container of a
 * moving picture. After the first frame only the changed rectangle is stored, so a minute of a quiet page is small.
 */
import type { Page } from 'playwright-core'

/** An encoded rectangle of the picture. */
interface Patch {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  /** A whole WebP file. */
  readonly webp: Buffer
}

export interface Frame extends Patch {
  durationMs: number
}

/**
 * Runs in the page: keeps the last picture, and encodes the rectangle that has changed. Undefined without a change.
 */
const encoder = `
let last
window.encode = async (png, { quality, ...size }) => {
  const image = await createImageBitmap(await (await fetch(png)).blob(), { ...size, resizeQuality: 'high' })
  const { width, height } = image
  const canvas = new OffscreenCanvas(width, height)
  const drawing = canvas.getContext('2d', { alpha: false })
  drawing.drawImage(image, 0, 0)
  const pixels = new Uint32Array(drawing.getImageData(0, 0, width, height).data.buffer)
  let [left, top, right, bottom] = last ? [width, height, -1, -1] : [0, 0, width - 1, height - 1]
  if (last)
    for (let y = 0, at = 0; y < height; y++)
      for (let x = 0; x < width; x++, at++)
        if (pixels[at] !== last[at]) {
          left = Math.min(left, x); right = Math.max(right, x)
          top = Math.min(top, y); bottom = y
        }
  last = pixels
  if (right < 0) return undefined
  // The container allows only even positions.
  left -= left % 2; top -= top % 2
  const patch = new OffscreenCanvas(right - left + 1, bottom - top + 1)
  patch.getContext('2d', { alpha: false }).drawImage(canvas, -left, -top)
  const bytes = new Uint8Array(await (await patch.convertToBlob({ type: 'image/webp', quality })).arrayBuffer())
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return { x: left, y: top, width: patch.width, height: patch.height, webp: btoa(text) }
}`

/** `page` is an empty page that encodes. */
export async function createEncoder(page: Page, how: { quality: number; resizeWidth?: number }) {
  await page.addScriptTag({ content: encoder })
  return async (png: Buffer): Promise<Patch | undefined> => {
    const call = `encode("data:image/png;base64,${png.toString('base64')}", ${JSON.stringify(how)})`
    const patch = (await page.evaluate(call)) as (Patch & { webp: string }) | undefined
    return patch && { ...patch, webp: Buffer.from(patch.webp, 'base64') }
  }
}

const uint24 = (value: number) =>
  Buffer.from([value & 255, (value >> 8) & 255, (value >> 16) & 255])

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

const chunk = (name: string, ...parts: Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  const padding = Buffer.alloc(content.length % 2)
  return Buffer.concat([Buffer.from(name), uint32(content.length), content, padding])
}

/** Repeats for ever. The layout: https://developers.google.com/speed/webp/docs/riff_container */
export function animationOf(frames: readonly Frame[]): Buffer {
  const { width = 1, height = 1 } = frames[0] ?? {}
  const isAnimation = Buffer.from([2, 0, 0, 0])
  const header = chunk('VP8X', isAnimation, uint24(width - 1), uint24(height - 1))
  const forEver = chunk('ANIM', Buffer.from([255, 255, 255, 255, 0, 0]))
  const patches = frames.map(({ x, y, width, height, durationMs, webp }) => {
    const place = [x / 2, y / 2, width - 1, height - 1, durationMs].map(uint24)
    // Drawn over the previous frame, without blending.
    return chunk('ANMF', ...place, Buffer.from([2]), imageIn(webp))
  })
  return chunk('RIFF', Buffer.from('WEBP'), header, forEver, ...patches)
}

/** The chunk with the picture, without the colour profile that Chromium adds. */
function imageIn(webp: Buffer): Buffer {
  for (let at = 12; at < webp.length; ) {
    const length = webp.readUInt32LE(at + 4)
    const next = at + 8 + length + (length % 2)
    if (/^VP8[ L]$/.test(webp.toString('latin1', at, at + 4))) return webp.subarray(at, next)
    at = next
  }
  throw new Error('this is not a WebP file')
}

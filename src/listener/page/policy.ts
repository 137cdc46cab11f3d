import { createHash } from 'node:crypto'
import { SCRIPT } from './script.ts'
import { STYLE } from './style.ts'

/** Our own style and script alone, named by their hashes; nothing is loaded from anywhere else, and nothing may frame us. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(STYLE)}'`,
  `script-src '${hashOf(SCRIPT)}'`,
  // The script asks for this page again.
  "connect-src 'self'",
  // The empty icon, without which a browser asks for /favicon.ico.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}

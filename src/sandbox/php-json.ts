// TypeScript's lib does not know rawJSON yet.
const json = JSON as JSON & { rawJSON: (text: string) => object }

/** A number of any length that is written digit by digit as it stands. */
export function exactNumber(digits: string): object {
  return json.rawJSON(digits)
}

/** JSON text as PHP's json_encode writes it: no spaces, slashes escaped, everything beyond ASCII as \uXXXX. */
export function phpJson(value: unknown): string {
  return JSON.stringify(value).replace(/[/\u0080-\uffff]/g, escapeUnit)
}

function escapeUnit(unit: string): string {
  return unit === '/' ? '\\/' : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

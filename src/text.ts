/**
 * Returns a text from outside, short enough for a message, with control and format characters as escapes: data must not
 * move the cursor of a terminal or reorder a line.
 */
export function printable(text: string, maxLength = 200): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}...` : text
  return cut.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escapeCharacter)
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

/**
 * Returns the same JSON, safe for a terminal: what `printable` escapes and JSON does not gets JSON's own escapes.
 * Control characters below the blank are only white space in valid JSON, and stay.
 */
export function printableJson(json: string): string {
  return json.replace(/[\u007f-\u009f]|\p{Cf}|\p{Zl}|\p{Zp}/gu, (character) =>
    Array.from({ length: character.length }, (_, unit) => escapeUnit(character.charCodeAt(unit))).join(''),
  )
}

function escapeUnit(code: number): string {
  return `\\u${code.toString(16).padStart(4, '0')}`
}

/** How messages name a job: `acme orders`. */
export function jobName(job: Record<'organization' | 'collection', { name: string }>): string {
  return `${job.organization.name} ${job.collection.name}`
}

/** Tells jobs apart in a map. */
export function jobKey(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}

/** What the name of a process says, as `cli/process-name.ts` makes it: its host, its number, and its marks. Null for another text. */
export function partsOfProcessName(
  name: string,
): Record<'host' | 'pid' | 'machine' | 'begin', string> | null {
  const [, host, pid, machine, begin] = /^(.*)-(\d+)-([0-9a-f]{6})([0-9a-f]{6})$/.exec(name) ?? []
  return host === undefined || !pid || !machine || !begin ? null : { host, pid, machine, begin }
}

/** A word of a command line, quoted if a shell would split or expand it. */
export function shellWord(word: string): string {
  const shown = printable(word, word.length)
  // A comma or a point at its end would be read as the sentence's.
  return /^[\w.,:=/@%+-]*[\w=/@%+-]$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`
}

/** Begins the end of the error of a refused token: what follows from the hold. The hold may end before the error is forgotten. */
export const ON_HOLD = 'Nothing more is sent with it.'

/** The end of the error of a refused token. `resume`: the command for a token that is valid again. */
export function onHold(resume: string): string {
  return `${ON_HOLD} Put a new token into the configuration, or run "${resume}" if it is valid again`
}

/** `4000` as `4,000`. */
export function grouped(count: number): string {
  // Counts avoid toLocaleString, whose first call takes 11 ms.
  if (!Number.isInteger(count)) return count.toLocaleString('en-US')
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 page`, `2 pages`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** A length of time as people say it: `45 seconds`, `67 minutes`, `11 hours`, `3 days`. */
export function inWords(ms: number): string {
  const units: [number, string, number][] = [
    [1000, 'second', 90],
    [60_000, 'minute', 90],
    [3_600_000, 'hour', 36],
    [86_400_000, 'day', Number.POSITIVE_INFINITY],
  ]
  const [size, noun] = units.find(([unit, , most]) => Math.round(ms / unit) <= most) ?? [1000, 'second']
  return counted(Math.max(Math.round(ms / size), ms > 0 ? 1 : 0), noun)
}

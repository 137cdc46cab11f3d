/** What became of a text: its value, or what to tell the user, and in both cases the variables that it names. */
export type Interpolated = { value: string; variables: string[] } | { problem: string; variables: string[] }

/** The environment as the commands get it. */
export type Environment = Readonly<Record<string, string | undefined>>

const REFERENCE = /\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g

/**
 * Replaces `${NAME}` by the environment variable, and `$$` by a dollar; a dollar before anything else stays.
 * What a variable holds is taken as it is, dollars included, and stands in no problem.
 */
export function interpolate(text: string, env: Environment): Interpolated {
  const variables: string[] = []
  let problem: string | null = null
  const value = text.replaceAll(REFERENCE, (reference: string, name: string | undefined) => {
    if (reference === '$$') return '$'
    if (name === undefined) {
      problem ??= MALFORMED
      return reference
    }
    variables.push(name)
    const found = Object.hasOwn(env, name) ? env[name] : undefined
    if (!found) problem ??= missing(name, found)
    return found ?? ''
  })
  return problem === null ? { value, variables } : { problem, variables }
}

/** The problem of a text that is left as it is, for want of an environment; null when it is well formed. */
export function findMalformedReference(text: string): string | null {
  for (const [reference, name] of text.matchAll(REFERENCE)) {
    if (reference !== '$$' && name === undefined) return MALFORMED
  }
  return null
}

const MALFORMED = `has a \${ that no variable follows. Write \${NAME}, with letters, digits and _ only, or $\${ for a dollar and a brace.`

function missing(name: string, found: string | undefined): string {
  const state = found === '' ? 'is empty' : 'is not set'
  return `the environment variable ${name} ${state}. Set ${name} before the program starts, or write the value here ($$ for a dollar).`
}

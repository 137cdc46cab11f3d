import path from 'node:path'

/** A change of the program's source that a test makes while Node loads it: a bug, or a place to die at. */
export interface Patch {
  /** From the root of the project: `src/sync/walk.ts`. */
  file: string
  /** Stands there exactly once. */
  find: string
  replace: string
}

/** The environment of a process that runs the patched program. */
export function patchedBy(...patches: Patch[]): { NODE_OPTIONS: string; PATCHES: string } {
  const hook = path.resolve(import.meta.dirname, 'apply-patches.ts')
  return { NODE_OPTIONS: `--import=${hook}`, PATCHES: JSON.stringify(patches) }
}

/** The source with those patches that are for this file. Throws where one does not fit, so that none is lost unseen. */
export function applyPatches(patches: readonly Patch[], file: string, source: string): string {
  return patches
    .filter((patch) => patch.file === file)
    .reduce((text, { find, replace }) => {
      const places = text.split(find)
      if (places.length !== 2)
        throw new Error(`${file} has ${places.length - 1} places for the patch of: ${find}`)
      return places.join(replace)
    }, source)
}

import { registerHooks } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { applyPatches, type Patch } from './patch.ts'

// To be named to Node with --import: loads the program with the patches that stand in the environment.

const ROOT = path.resolve(import.meta.dirname, '../..')
const patches = JSON.parse(process.env.PATCHES ?? '[]') as Patch[]

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (!url.startsWith('file:')) return loaded
    const file = path.relative(ROOT, fileURLToPath(url)).replaceAll(path.sep, '/')
    if (!patches.some((patch) => patch.file === file)) return loaded
    const source = Buffer.from(loaded.source as Uint8Array).toString()
    return { ...loaded, source: applyPatches(patches, file, source) }
  },
})

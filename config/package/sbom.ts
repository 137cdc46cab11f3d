import crypto from 'node:crypto'
import fs from 'node:fs'
import { run } from './tools.ts'

/** Writes a CycloneDX list of what is installed in the folder, as npm makes it, and returns the file. */
export function makeSbom(folder: string, file: string, epoch: number): string {
  const sbom = JSON.parse(run('npm', ['sbom', '--sbom-format=cyclonedx', '--omit=dev'], folder))
  // npm puts in the time and a random number.
  sbom.metadata.timestamp = new Date(epoch * 1000).toISOString()
  delete sbom.serialNumber
  const digest = crypto.createHash('sha256').update(JSON.stringify(sbom)).digest('hex')
  const uuid = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5')
  fs.writeFileSync(file, `${JSON.stringify({ ...sbom, serialNumber: `urn:uuid:${uuid}` }, null, 2)}\n`)
  return file
}

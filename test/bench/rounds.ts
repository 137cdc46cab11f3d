/**
 * Runs all contenders once a round, one after another and always in the same order, so that whatever else the machine does
 * meanwhile falls on all of them. Returns what each measured, by round.
 */
export async function interleaved<Name extends string, T>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Promise<T>>>,
  onRound: (round: number) => void,
): Promise<Record<Name, T[]>> {
  const names = Object.keys(contenders) as Name[]
  const measured = Object.fromEntries(names.map((name): [string, T[]] => [name, []])) as Record<Name, T[]>
  for (let round = 1; round <= rounds; round++) {
    onRound(round)
    for (const name of names) measured[name].push(await contenders[name]())
  }
  return measured
}

// Scales and ticks.

/** Round steps that divide [low, high] into about `count` parts. */
function niceTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

/** A vertical scale over values; floor: where it starts, or null for the smallest value. */
function verticalScale(values, { floor, log, line }, top, bottom) {
  const finite = values.filter((value) => value !== null && Number.isFinite(value) && (!log || value > 0));
  if (line !== null && line !== undefined) finite.push(line);
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  if (log) {
    [low, high] = [Math.log10(low) - 0.05, Math.log10(high) + 0.05];
    // zero has no place on this axis: it sits at the foot
    const y = (value) => bottom - ((value > 0 ? Math.log10(value) - low : 0) / (high - low)) * (bottom - top);
    const ticks = [];
    const factors = high - low > 2.5 ? [1] : [1, 2, 5];
    for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
      ticks.push(
        ...factors.map((factor) => factor * 10 ** power).filter((v) => Math.log10(v) >= low && Math.log10(v) <= high),
      );
    }
    return { y, ticks };
  }
  if (floor !== null && floor !== undefined) low = Math.min(floor, low);
  if (high - low < 1e-12) high = low + (Math.abs(low) || 1);
  const room = (high - low) * 0.05;
  high += room;
  if (floor === null || low < floor) low -= room;
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  return { y, ticks: niceTicks(low, high, Math.max(2, Math.round((bottom - top) / 48))) };
}

/** Ticks of the depth axis as [position, text], at most `room`. */
function depthTicks(room) {
  if (!sameDepth) return [0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share} %`]);
  const depth = models[0].depth;
  const step = [1, 2, 3, 4, 6, 8, 12].find((every) => depth / every <= room) ?? 12;
  const layers = Array.from({ length: depth }, (_, i) => i + 1);
  return layers.filter((layer) => layer === 1 || layer % step === 0).map((layer) => [layer, String(layer)]);
}

/** Horizontal scale over depth: first layer at `left`, last at `right`. */
function depthScale(left, right) {
  const depth = models[0]?.depth ?? 1;
  const [low, high] = sameDepth ? [1, Math.max(depth, 2)] : [0, 1];
  return (at) => left + ((at - low) / (high - low)) * (right - left);
}

#!/bin/sh
# Train for the vote: an analyst of the market desk learns that the majority of five of its analyses is right.
#
#   recipes/vote_trained_analyst.sh [DIR]        on the embedded models, on a CPU, offline
#
#   the desk before -> the weakest analyst trained with majority@5 as the desk asks it -> the desk after
#
# The control is the same training for single analyses (objective mean) with the same samples. Desk, temperature and
# personas are those of recipes/market_desk.py. The briefs are made up; nothing here is trading advice, and a number from
# here supports no sentence about large models.
set -eu

DIR=${1:-out/vote_trained_analyst}
PLURIBUS=${PLURIBUS:-pluribus}
PYTHON=${PYTHON:-python3}
PROMPTS=${PROMPTS:-2000}   # training briefs
TEST=${TEST:-300}          # test briefs that the desk reads; never trained on
STEPS=${STEPS:-60}
ANALYST=${ANALYST:-zoo/olmo}             # sits at the second of the three seats
PERSONA=${PERSONA:-macro strategist}     # as whom the desk asks it
FIRST=${FIRST:-zoo/qwen}
THIRD=${THIRD:-zoo/phi}
TEMPERATURE=${TEMPERATURE:-1.7}
SAMPLES=${SAMPLES:-16}
RATE=${RATE:-3e-4}

export PLURIBUS_HOME="$DIR/workspace"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
mkdir -p "$DIR"
HERE=$(dirname "$0")

say() { printf '\n== %s\n' "$*" >&2; }
desk() {  # NAME, the model at the second seat
    say "the desk, $1"
    $PYTHON "$HERE/market_desk.py" --models "$FIRST" "$2" "$THIRD" --questions "$TEST" --temperature "$TEMPERATURE" \
        --k 1 5 --out "$DIR/desk-$1" | tee "$DIR/desk-$1.txt"
}
analyst() {  # NAME, flags of the objective
    arm=$1; shift
    say "analyst: $arm"
    $PLURIBUS train grpo --model "$ANALYST" --data briefs@train --limit "$PROMPTS" --persona "$PERSONA" --prompt cot \
        --eval-data briefs@dev --eval-limit 100 --eval-steps 20 --out "$DIR/$arm" --max-steps "$STEPS" --batch-size 64 \
        --accumulation 2 --samples "$SAMPLES" --temperature "$TEMPERATURE" --max-new-tokens 120 --learning-rate "$RATE" \
        --scheduler cosine --warmup-ratio 0.1 --save-steps 20 --logging-steps 5 "$@"
}

desk before "$ANALYST"
analyst majority5 --objective majority --k 5
analyst single --objective mean --set grpo.eval_samples=5   # held out, both are asked the same
desk majority5 "local/$DIR/majority5"
desk single "local/$DIR/single"

say "before and after"
$PYTHON "$HERE/desk_difference.py" "$DIR/desk-before" "$DIR/desk-majority5" "$DIR/desk-single" | tee "$DIR/difference.txt"

say "report"
$PLURIBUS report "$DIR/majority5" "$DIR/single" --out "$DIR/report" --title "An analyst trained for the vote"
printf '\n%s\n' "$DIR/desk-*.txt, $DIR/difference.txt, $DIR/report/report.html" >&2

#!/bin/sh
# Many into one: a council's debates become one model, which is then measured against what it cost.
#
#   recipes/debate_to_student.sh [DIR]        the whole walk on the embedded models, on a CPU, offline
#
#   council debates on training questions -> labels -> RSFT, DA, a process reward model -> evaluation with controls
#
# Three members of the zoo are the council, the fourth, zoo/qwen, is the student: it never sat with them. The control is
# the best single teacher asked as often as the council, and trained on as many tokens. A number from here supports no
# sentence about large models. With real models only the names below change: see recipes/council_to_qwen3.sh.
set -eu

DIR=${1:-out/debate_to_student}
PLURIBUS=${PLURIBUS:-pluribus}
TASK=${TASK:-sums}
TRAIN=${TRAIN:-1200}     # questions the council debates
TEST=${TEST:-1000}       # questions everybody is measured on; never trained on
STEPS=${STEPS:-150}      # optimiser steps of each student
PRM_STEPS=${PRM_STEPS:-300}
PICKED=${PICKED:-200}    # questions on which the process reward model picks among 8 draws
STUDENT=${STUDENT:-zoo/qwen}
COUNCIL=${COUNCIL:-zoo/gemma,zoo/olmo,zoo/phi}
TEACHER=${TEACHER:-zoo/gemma}
VERIFIER=${VERIFIER:-zoo/phi}  # becomes the process reward model; it did not write what it judges
CALLS=6                  # of the council: three seats, twice each

export PLURIBUS_HOME="$DIR/workspace"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"  # models this small lose more by waiting for a second thread than they gain
mkdir -p "$DIR"

say() { printf '\n== %s\n' "$*" >&2; }
name() { python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])'; }

# --- the council, and one teacher alone at equal calls ---------------------------------------------------------------
say "the council debates $TRAIN training questions"
DEBATE=$($PLURIBUS run --task "$TASK" --split train --limit "$TRAIN" --method debate --debate-rounds 1 \
    --agent-models "$COUNCIL" --max-tokens 160 --json | name)
say "$TEACHER alone, asked as often"
ALONE=$($PLURIBUS run --task "$TASK" --split train --limit "$TRAIN" --method self_consistency --set parallel_num=$CALLS \
    --agent-models "$TEACHER" --max-tokens 160 --json | name)

# --- labels: the task's checker marks every answer, and every step -----------------------------------------------------
say "labels"
$PLURIBUS label "$DEBATE"
$PLURIBUS label "$DEBATE" --steps checker
$PLURIBUS label "$ALONE"

# --- what is learned from ---------------------------------------------------------------------------------------------
say "training rows"
$PLURIBUS distil "$DEBATE" --view rsft --out "$DIR/rsft.jsonl"
$PLURIBUS distil "$DEBATE" --view da --out "$DIR/da.jsonl"
$PLURIBUS distil "$DEBATE" --view steps --out "$DIR/steps.jsonl"
$PLURIBUS distil "$ALONE" --view rsft --out "$DIR/teacher.jsonl"

# --- four models: three students, taught the same number of steps, and a process reward model -----------------------------
for arm in rsft da teacher; do
    say "student: $arm"
    $PLURIBUS train sft --model "$STUDENT" --data "$DIR/$arm.jsonl" --out "$DIR/$arm" --max-steps "$STEPS" \
        --batch-size 32 --learning-rate 5e-4 --scheduler cosine --warmup-ratio 0.05 --save-steps 50
done
say "process reward model"
$PLURIBUS train prm --model "$VERIFIER" --data "$DIR/steps.jsonl" --out "$DIR/prm" --max-steps "$PRM_STEPS" \
    --batch-size 32 --learning-rate 2e-3 --scheduler cosine --save-steps 100 --set prm.contrast=0

# --- what it is worth: everybody on the same test questions, the single teacher's student as the control ----------------
say "evaluation: one greedy answer of each student, beside the council itself"
JUDGED=$($PLURIBUS run --task "$TASK" --split test --limit "$TEST" --method debate --debate-rounds 1 \
    --agent-models "$COUNCIL" --max-tokens 160 --json | name)
$PLURIBUS evaluate "$STUDENT" "local/$DIR/rsft" "local/$DIR/da" "local/$DIR/teacher" "$JUDGED" \
    --task "$TASK" --split test --limit "$TEST" --temperature 0 --max-tokens 160 --out "$DIR/evaluation"

say "the best of 8 draws of $STUDENT, picked by the process reward model"
DRAWS=$($PLURIBUS run --task "$TASK" --split test --limit "$PICKED" --method vote --num-agents 8 \
    --agent-models "$STUDENT" --max-tokens 160 --json | name)
picked() {  # NAME, one judge
    printf 'judges: [%s]\nnormalise: none\n' "$2" > "$DIR/$1.yaml"
    $PLURIBUS reward "$DRAWS" --judges "$DIR/$1.yaml" --out "$DIR/$1"
}
picked by-steps "{role: verifier, kind: prm, model: \"local/$DIR/prm\", settings: {aggregate: min}}"
say "the same, picked by their likelihood under $VERIFIER, which was taught nothing for it"
picked by-likelihood "{role: reader, kind: logprob, model: $VERIFIER, settings: {mode: likelihood}}"

say "report"
$PLURIBUS report "$DEBATE" "$DRAWS" --out "$DIR/report" --title "Many into one: $TASK"
printf '\n%s\n' "$DIR/evaluation/table.csv, $DIR/report/report.html" >&2

use proptest::prelude::*;

use super::*;

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

fn trace(list: &[(u64, u64)]) -> Trace {
    let step =
        |(rate, ms): &(u64, u64)| Step { rate: mbit(*rate), duration: Span::from_millis(*ms) };
    Trace::new(list.iter().map(step)).expect("a good trace")
}

fn refusal<T: std::fmt::Debug>(result: Result<T, SpecError>) -> String {
    result.expect_err("should be refused").to_string()
}

#[test]
fn work_is_what_the_steps_before_add_up_to() {
    let steps = (0..1_000).map(|step| Step {
        rate: mbit(step * 7 % 11),
        duration: Span::from_micros(1 + step * 13 % 17),
    });
    let trace = Trace::new(steps).expect("good");
    let (mut start, mut work) = (0, 0);
    for Step { rate, duration } in trace.steps() {
        for into in [0, 1, duration.as_nanos() - 1] {
            let expected = work + u128::from(rate.as_bps()) * u128::from(into);
            assert_eq!(trace.work_until(start + into), expected);
            // However long the trace is, few steps are looked at.
            assert!(trace.since_sum(start + into).2.len() <= BLOCK);
        }
        start += duration.as_nanos();
        work += u128::from(rate.as_bps()) * u128::from(duration.as_nanos());
    }
    assert_eq!(trace.work_until(start), work);
    assert_eq!(trace.peak(), mbit(10));
}

mod rate_lines {
    use super::*;

    #[test]
    fn rates_and_intervals_are_read_with_commas_blanks_and_comments() {
        let text = "# made by hand\n2310,0.31\n\n 962.5 , 0.3 # blocked\r\n0\t1e-1\n";
        let read = Trace::parse(text).expect("good");
        let list: Vec<_> =
            read.steps().map(|step| (step.rate.as_bps(), step.duration.as_nanos())).collect();
        assert_eq!(
            list,
            [(2_310_000_000, 310_000_000), (962_500_000, 300_000_000), (0, 100_000_000)]
        );
        assert_eq!(read.to_string(), "2310,0.31\n962.5,0.3\n0,0.1\n");
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, says) in [
            ("10,1\n-5,1", "line 2: rate '-5' is negative (allowed: a number of Mbit/s from 0"),
            ("10,1\n\n5,-1", "line 3: interval '-1' is negative"),
            ("10,0", "line 1: interval '0' is zero (allowed: a number of seconds above 0"),
            ("ten,1", "line 1: rate 'ten' is not a number"),
            ("NaN,1", "line 1: rate 'NaN' is not a number"),
            ("inf,1", "line 1: rate 'inf' is not a number"),
            ("1e300,1", "line 1: rate '1e300' is too large"),
            ("10,1e9", "line 1: interval '1e9' is too large"),
            ("10", "line 1: '10' is not a rate and an interval (allowed: rate_mbps,interval_s"),
            ("10,1,3", "line 1: '10,1,3' is not a rate and an interval"),
            ("", "no lines"),
            ("# nothing\n\n", "no lines"),
            ("0,1\n0,2", "every rate is zero"),
        ] {
            let error = refusal(Trace::parse(text));
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_binary_file_does_not_fill_the_screen() {
        assert!(refusal(Trace::parse(&"x".repeat(100_000))).len() < 200);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([-+0-9.,e#\\s]|.){0,60}") {
            let _ = Trace::parse(&text);
        }

        #[test]
        fn no_numbers_make_the_parser_panic(lines in prop::collection::vec((any::<f64>(), any::<f64>()), 0..8)) {
            let text: String = lines.iter().map(|(rate, span)| format!("{rate},{span}\n")).collect();
            let _ = Trace::parse(&text);
        }

        #[test]
        fn what_is_written_reads_back(
            list in prop::collection::vec((0u64..=MAX_RATE.as_bps(), 1u64..=MAX_STEP.as_nanos()), 1..20)
        ) {
            let steps = list.iter().map(|(bps, ns)| Step {
                rate: Rate::from_bps(*bps),
                duration: Span::from_nanos(*ns),
            });
            prop_assume!(list.iter().any(|(bps, _)| *bps > 0));
            let trace = Trace::new(steps).expect("within the limits");
            prop_assert_eq!(Trace::parse(&trace.to_string()), Ok(trace));
        }
    }
}

mod formats {
    use super::*;

    fn read(text: &str) -> Result<Trace, SpecError> {
        Trace::parse_as(Format::detect(text), None, text)
    }

    fn list(trace: &Trace) -> Vec<(u64, u64)> {
        trace.steps().map(|step| (step.rate.as_bps() / 1000, step.duration.as_millis())).collect()
    }

    #[test]
    fn a_format_is_seen_from_the_first_lines() {
        for (text, format) in [
            ("", Format::Steps),
            ("2310,0.31\n2310,0.30\n", Format::Steps),
            ("# rate and interval\n10 1\n20 1\n", Format::Steps),
            // Cut by commas they are steps even if they begin at zero and grow.
            ("0,1\n1,1\n", Format::Steps),
            ("0 0.5\n0 0.5\n", Format::Steps),
            ("0 86.0\n1 105.0\n2 100.5\n", Format::Samples),
            ("0.0\t86.0\n0.9\t105.0\n", Format::Samples),
            ("rate_mbps,interval_s\n1,1\n", Format::Csv),
            ("\u{feff}Timestamp,DL_bitrate\n", Format::Csv),
            ("run_num,seq_num,Throughput\n", Format::Csv),
            ("{\n}", Format::Gym),
            ("0\n0\n3\n", Format::Mahimahi),
            ("ten,1\n", Format::Steps),
        ] {
            assert_eq!(Format::detect(text), format, "{text:?}");
        }
    }

    #[test]
    fn a_sample_lasts_until_the_next_and_the_last_as_long_as_the_one_before() {
        let trace = read("0 86\n1 105\n3 100.5\n").expect("good");
        assert_eq!(list(&trace), [(86_000, 1000), (105_000, 2000), (100_500, 2000)]);
        let alone = Trace::parse_as(Format::Samples, None, "17 5\n").expect("good");
        assert_eq!(list(&alone), [(5000, 1000)]);
    }

    #[test]
    fn samples_of_one_time_share_what_it_lasts() {
        // Recordings in whole seconds hold some twice and pass others over.
        let trace = read("0 10\n1 20\n1 30\n2 40\n4 50\n").expect("good");
        assert_eq!(
            list(&trace),
            [(10_000, 1000), (20_000, 500), (30_000, 500), (40_000, 2000), (50_000, 2000)]
        );
    }

    #[test]
    fn the_irish_5g_columns_are_dates_and_kilobits() {
        let text = "Timestamp,Longitude,Operatorname,CellID,DL_bitrate,UL_bitrate,State,PINGAVG\n\
                    2019.12.16_13.40.04,-8.4,B,2,50023,11,D,-\n\
                    2019.12.16_13.40.05,-8.4,\"B,x\",2,0,12,D,-\n\
                    2019.12.16_13.40.07,-8.4,B,2,61000,13,D,24\n";
        let trace = read(text).expect("good");
        assert_eq!(list(&trace), [(50_023, 1000), (0, 2000), (61_000, 2000)]);
        let up = Trace::parse_as(Format::Csv, Some("ul_bitrate"), text).expect("good");
        assert_eq!(list(&up), [(11, 1000), (12, 2000), (13, 2000)]);
    }

    #[test]
    fn the_lumos5g_runs_follow_one_another() {
        let text = "run_num,seq_num,abstractSignalStr,Throughput,mobility_mode\n\
                    1,1,2,1000,walking\n1,2,2,500,walking\n2,1,1,20,driving\n2,3,1,30,driving\n";
        let trace = read(text).expect("good");
        assert_eq!(
            list(&trace),
            [(1_000_000, 1000), (500_000, 1000), (20_000, 2000), (30_000, 2000)]
        );
    }

    #[test]
    fn gym_steps_are_kilobits_and_milliseconds() {
        let text = r#"{"type": "video", "downlink": {}, "uplink": {"trace_pattern": [
            {"duration": 2896, "capacity": 179, "loss": 0, "rtt": 89, "jitter": 0},
            {"capacity": 1000.5, "duration": 613, "note": ["\"}", null, {}]}]}}"#;
        assert_eq!(list(&read(text).expect("good")), [(179, 2896), (1000, 613)]);
        let down = text
            .replace("uplink", "x")
            .replace("downlink", "uplink")
            .replace("\"x\"", "\"downlink\"");
        assert_eq!(list(&read(&down).expect("good")), [(179, 2896), (1000, 613)]);
        let none = Trace::parse_as(Format::Gym, Some("downlink"), text);
        assert!(refusal(none).contains("trace_pattern"));
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, says) in [
            (
                "0 10\n2 10\n1 10",
                "line 3: time runs backwards, from 2s to 1s (allowed: 2s or later)",
            ),
            ("0 10\n1 -10", "line 2: rate '-10' is negative (allowed: a number of Mbit/s from 0"),
            ("0 10\n1 NaN", "line 2: rate 'NaN' is not a number"),
            ("0 10\n1 1e300", "line 2: rate '1e300' is too large"),
            ("0 10\n1 1\n1e9 1", "line 3: the line before is 999999999s earlier"),
            ("0 10\n1 1\n2", "line 3: '2' is not a time and a rate"),
            ("0 0\n1 0", "every rate is zero"),
            ("time_s,rate_mbps\n0,5\n", ""),
            ("time_s,rate_mbps\n", "no lines (allowed: a head such as"),
            ("time_s,rate_mbps\n0,5\n-1,5", "line 3: time_s '-1' is negative"),
            ("time_s,rate_mbps\n0,5\n3,-5", "line 3: rate_mbps '-5' is negative"),
            ("time_s,rate_mbps\n0,5\n3", "line 3: there is no column 2 (allowed: 2 columns"),
            ("time_s,rate_mbps\n5,5\n3,5", "line 3: time runs backwards, from 5s to 3s"),
            (
                "Timestamp,DL_bitrate\n2019.13.16_13.40.04,5",
                "line 2: Timestamp '2019.13.16_13.40.04' is not a number",
            ),
            ("Timestamp,DL_bitrate\nyesterday,5", "a date such as 2019.12.16_13.40.04"),
            (
                "Timestamp,RSRP\n1,5",
                "line 1: no column is a rate that is known; name it with 'column' (allowed: Timestamp, RSRP)",
            ),
            ("place,throughput\nx,5", "line 1: no column is a time that is known (allowed: time_s"),
            ("rate_mbps,interval_s\n5,0", "line 2: interval_s '0' is zero"),
            ("{", "line 1: the text ends (allowed: '\"' here)"),
            ("{\n\"uplink\": [1,\n2 3]}", "line 3: '3]}' is no JSON (allowed: ',' here)"),
            ("{\"uplink\": {}}", "there is no list of steps (allowed: {\"uplink\""),
            ("{\"uplink\": {\"trace_pattern\": []}}", "no steps"),
            (
                "{\"uplink\": {\"trace_pattern\": [\n{\"duration\": 1}]}}",
                "line 2: a step has no 'capacity'",
            ),
            (
                "{\"uplink\": {\"trace_pattern\": [\n{\"capacity\": -1}]}}",
                "line 2: capacity '-1' is negative",
            ),
            (
                "{\"uplink\": {\"trace_pattern\": [\n{\"capacity\": \"1\"}]}}",
                "line 2: capacity is not a number",
            ),
            ("{\"a\":[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]}", "line 1: too deep"),
        ] {
            match read(text) {
                Ok(_) => assert_eq!(says, "", "{text:?}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!says.is_empty() && error.contains(says), "{text:?}: {error}");
                }
            }
        }
        let other = Trace::parse_as(Format::Csv, Some("DLbitrate"), "time,DL_bitrate\n0,1\n");
        assert!(refusal(other).contains("did you mean 'DL_bitrate'"));
        let steps = Trace::parse_as(Format::Steps, Some("x"), "1,1");
        assert!(refusal(steps).contains("column 'x': the format steps has no columns"));
        let side = Trace::parse_as(Format::Gym, Some("up"), "{}");
        assert!(refusal(side).contains("allowed: uplink, downlink"));
        assert!(refusal(Format::parse("stpes")).contains("did you mean 'steps'"));
        assert!(refusal(trace(&[(1, 1)]).written_as(Format::Mahimahi)).contains("opportunities"));
    }

    #[test]
    fn a_thousand_levels_of_json_do_not_fill_the_stack() {
        assert!(refusal(read(&"{\"a\":".repeat(1000))).contains("too deep"));
        assert!(refusal(read(&"[".repeat(100_000))).contains("too deep"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(
            text in "((time_s|Timestamp|rate_mbps|DL_bitrate|interval_s|run_num)[,; ])*\n?([-+0-9.,;e#\"\\s]|.){0,60}",
            column in prop::option::of("[a-zA-Z_]{0,10}"),
        ) {
            let _ = read(&text);
            for format in Format::ALL {
                let _ = Trace::parse_as(format, column.as_deref(), &text);
            }
        }

        #[test]
        fn no_json_makes_the_parser_panic(
            text in "\\{\"uplink\": ?\\{\"trace_pattern\":([-0-9.e:,{}\\[\\]\"\\\\\n ]|duration|capacity){0,40}"
        ) {
            let _ = Trace::parse_as(Format::Gym, None, &text);
        }

        #[test]
        fn what_is_written_reads_back_in_every_format(
            list in prop::collection::vec((0u64..=MAX_RATE.as_bps(), 1u64..=MAX_STEP.as_nanos()), 1..20)
        ) {
            prop_assume!(list.iter().any(|(bps, _)| *bps > 0));
            let trace = Trace::new(list.iter().map(|(bps, ns)| Step {
                rate: Rate::from_bps(*bps),
                duration: Span::from_nanos(*ns),
            })).expect("within the limits");
            for format in [Format::Steps, Format::Csv, Format::Gym] {
                let text = trace.written_as(format).expect("not opportunities");
                prop_assert_eq!(Format::detect(&text), format);
                prop_assert_eq!(Trace::parse_as(format, None, &text), Ok(trace.clone()));
            }
        }

        #[test]
        fn samples_read_back_but_for_the_length_of_the_last(
            list in prop::collection::vec((1u64..=MAX_RATE.as_bps(), 1u64..1_000_000_000_000), 2..20)
        ) {
            // Times in binary fractions are exact to the nanosecond up to 10^6 s or so.
            let trace = Trace::new(list.iter().map(|(bps, ns)| Step {
                rate: Rate::from_bps(*bps),
                duration: Span::from_nanos(*ns),
            })).expect("within the limits");
            let text = trace.written_as(Format::Samples).expect("not opportunities");
            let back = Trace::parse_as(Format::Samples, None, &text).expect("it was written");
            let all: Vec<_> = trace.steps().collect();
            let last = all.len() - 1;
            let mut expected = all.clone();
            expected[last].duration = all[last - 1].duration;
            prop_assert_eq!(back.steps().collect::<Vec<_>>(), expected);
        }
    }
}

mod mahimahi {
    use super::*;

    #[test]
    fn a_line_is_an_opportunity() {
        let schedule = Schedule::parse("0\n0\n7\n7\n10\n").expect("good");
        assert_eq!(schedule.millis(), [0, 0, 7, 7, 10]);
        assert_eq!(schedule.period(), Span::from_millis(10));
        assert_eq!(schedule.to_string(), "0\n0\n7\n7\n10\n");
    }

    #[test]
    fn one_line_with_1_is_12_mbit_a_second() {
        let schedule = Schedule::parse("1").expect("good");
        assert_eq!(schedule.mean(1500), mbit(12));
        let trace = schedule.to_trace(Span::from_millis(100), 1500).expect("good");
        assert_eq!(trace.info().mean, mbit(12));
    }

    #[test]
    fn errors_name_the_line_and_what_is_allowed() {
        for (text, says) in [
            ("1\n5\n4", "line 3: time runs backwards, from 5 to 4 (allowed: 5 or more)"),
            ("1\n-5", "line 2: '-5' is not a time (allowed: a whole number of milliseconds"),
            ("1.5", "line 1: '1.5' is not a time"),
            ("4294967296", "line 1: '4294967296' is not a time"),
            ("", "no lines"),
            ("0\n0", "no period"),
        ] {
            let error = refusal(Schedule::parse(text));
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn more_lines_than_allowed_are_refused_at_the_first_one_too_many() {
        let text = "1\n".repeat(MAX_STEPS + 1);
        let error = refusal(Schedule::parse(&text));
        assert!(
            error.contains("line 10000001: too many lines (allowed: up to 10000000)"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([0-9#\\s]|.){0,60}") {
            let _ = Schedule::parse(&text);
        }

        #[test]
        fn what_is_written_reads_back(mut millis in prop::collection::vec(0u32.., 1..40)) {
            millis.sort_unstable();
            prop_assume!(millis.last() != Some(&0));
            let schedule = Schedule::new(millis).expect("sorted");
            prop_assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule));
        }
    }
}

mod conversion {
    use super::*;

    #[test]
    fn opportunities_come_when_their_capacity_is_complete() {
        // 6 Mbit/s gives 1500 bytes every 2 ms; then nothing; then every 0.5 ms.
        let schedule = Schedule::from_trace(&trace(&[(6, 5), (0, 10), (24, 2)]), 1500);
        // After 5 ms half an opportunity is carried over the outage: due 0.25 ms after it.
        assert_eq!(schedule.expect("good").millis(), [2, 4, 16, 16, 17, 17]);
    }

    #[test]
    fn a_last_opportunity_keeps_the_period() {
        let schedule = Schedule::from_trace(&trace(&[(12, 3), (0, 7)]), 1500).expect("good");
        assert_eq!(schedule.millis(), [1, 2, 3, 10]);
    }

    #[test]
    fn a_trace_of_too_many_opportunities_is_refused() {
        let error = refusal(Schedule::from_trace(&trace(&[(3_000, 126_000)]), 1500));
        assert!(error.contains("carries 31500000 times 1500 bytes: too many"), "{error}");
    }

    #[test]
    fn bins_hold_the_opportunities_up_to_their_end() {
        let schedule = Schedule::new(vec![0, 1, 10, 11, 25]).expect("good");
        let trace = schedule.to_trace(Span::from_millis(10), 1500).expect("good");
        let list: Vec<_> =
            trace.steps().map(|s| (s.rate.as_bps(), s.duration.as_millis())).collect();
        // Three in the first 10 ms, one in the next, one in the last 5.
        assert_eq!(list, [(3_600_000, 10), (1_200_000, 10), (2_400_000, 5)]);
    }

    #[test]
    fn a_bin_below_a_millisecond_is_refused() {
        let schedule = Schedule::new(vec![1]).expect("good");
        assert!(refusal(schedule.to_trace(Span::from_micros(10), 1500)).contains("from 1ms"));
    }

    proptest! {
        #[test]
        fn a_round_trip_keeps_the_bytes(
            list in prop::collection::vec((0u64..50, 1u64..200), 1..12),
            bin in 1u64..50,
        ) {
            prop_assume!(list.iter().any(|(rate, _)| *rate > 0));
            let trace = trace(&list);
            let bytes: u64 = list.iter().map(|(rate, ms)| rate * ms * 125).sum();
            let schedule = Schedule::from_trace(&trace, 1500).expect("short");
            // What is left of the last opportunity is cut, or filled up to mark the period.
            let carried = schedule.millis().len() as u64 * 1500;
            prop_assert!(carried.abs_diff(bytes) <= 1500, "{} {}", carried, bytes);
            prop_assert_eq!(schedule.period(), trace.duration());
            let back = schedule.to_trace(Span::from_millis(bin), 1500).expect("few bins");
            prop_assert_eq!(back.duration(), trace.duration());
            let bits: u128 = back
                .steps()
                .map(|s| u128::from(s.rate.as_bps()) * u128::from(s.duration.as_millis()))
                .sum();
            // Each bin's rate is rounded down by less than 1 bit/s.
            let exact = u128::from(carried) * 8000;
            prop_assert!(bits <= exact && exact - bits <= u128::from(back.duration().as_millis()));
        }
    }
}

mod info {
    use super::*;

    #[test]
    fn statistics_weigh_by_time() {
        let trace = trace(&[(10, 1000), (100, 500), (0, 300), (20, 200)]);
        let info = trace.info();
        assert_eq!(info.steps, 4);
        assert_eq!(info.duration, Span::from_secs(2));
        // (10*1 + 100*0.5 + 20*0.2) / 2.
        assert_eq!(info.mean, mbit(32));
        assert_eq!((info.min, info.min_above_zero), (mbit(0), mbit(10)));
        assert_eq!((info.median, info.max), (mbit(10), mbit(100)));
        assert_eq!(info.outage, Span::from_millis(300));
        assert_eq!(trace.time_below(mbit(20)), Span::from_millis(1300));
        assert_eq!(trace.share_below(mbit(20)), 0.65);
    }
}

mod dips {
    use super::*;

    #[test]
    fn a_dip_lasts_from_below_the_threshold_to_above_it() {
        let trace = trace(&[(10, 100), (100, 500), (40, 300), (0, 200), (50, 100), (49, 10)]);
        let list: Vec<_> = trace
            .dips(mbit(50))
            .iter()
            .map(|dip| (dip.onset.as_millis(), dip.length.as_millis(), dip.floor))
            .collect();
        assert_eq!(list, [(0, 100, mbit(10)), (600, 500, mbit(0)), (1200, 10, mbit(49))]);
        assert_eq!(trace.dips(Rate::ZERO), []);
    }

    #[test]
    fn quantiles_weigh_by_time() {
        let trace = trace(&[(10, 1000), (100, 500), (0, 300), (20, 200)]);
        let quantiles = trace.quantiles([0.0, 0.1, 0.15, 0.16, 0.65, 0.66, 0.76, 1.0]);
        assert_eq!(
            quantiles.map(|rate| rate.as_bps() / 1_000_000),
            [0, 0, 0, 10, 10, 20, 100, 100]
        );
    }
}

mod playback {
    use super::*;

    fn witest(list: &str, overhead_ms: u64) -> String {
        let step_overhead = Span::from_millis(overhead_ms);
        let trace = Trace::parse(list).expect("good");
        Playback::Witest2020 { step_overhead }.apply(&trace).expect("good").to_string()
    }

    #[test]
    fn nominal_changes_nothing() {
        let trace = trace(&[(10, 250), (0, 310)]);
        assert_eq!(Playback::Nominal.apply(&trace), Ok(trace));
    }

    #[test]
    fn witest_2020_cuts_the_last_digit_and_adds_its_overhead() {
        assert_eq!(
            witest("10,0.25\n20,0.26\n30,0.30\n40,0.31", 16),
            "10,0.216\n20,0.216\n30,0.316\n40,0.316\n"
        );
        // Written with two decimals first: 0.299 is 0.30.
        assert_eq!(witest("10,0.299\n20,1", 0), "10,0.3\n20,1\n");
    }

    #[test]
    fn witest_2020_refuses_rate_zero_so_the_one_before_stays() {
        assert_eq!(witest("385,0.3\n0,0.3\n753,0.3", 0), "385,0.3\n385,0.3\n753,0.3\n");
        assert_eq!(witest("0,0.3\n753,0.3", 0), "753,0.3\n753,0.3\n");
    }

    #[test]
    fn steps_cut_to_nothing_are_left_out() {
        assert_eq!(witest("10,0.09\n20,0.1", 0), "20,0.1\n");
        let trace = Trace::parse("10,0.09").expect("good");
        let nothing = Playback::Witest2020 { step_overhead: Span::ZERO }.apply(&trace);
        assert!(refusal(nothing).contains("playback witest-2020: the trace has no steps"));
    }
}
